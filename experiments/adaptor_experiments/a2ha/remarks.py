"""Where our figures agree with the papers', where not, and why."""

from __future__ import annotations

HOSTS = (
    "Optimal is the work over the usable time of a unit, rounded up (footnote 6 of 2011): 18 and 12 as in the"
    " paper, and 27 where it says 29 (see the first table). The presets of 2008 are measured without a"
    " start-up, as in that paper, so that their optimum is lower; the demo's unit has its start-up in all.",
    "The task lists of the papers are not published. The synthetic bags have all the statistics that are;"
    " what these leave open is chosen by a rule (see the lists).",
    "frugal is not of the papers: it buys what will be charged anyway with a certainty of 80 %, and begins"
    " with a few hosts as a sample. The certainty was set on other bags (uniform, exponential, log-normal,"
    " two-valued, and normal of 400 s). It pays with time: the last hosts are bought late, when it is known"
    " that they are needed. On the demo's parts, whose deviation is as large as their mean, it keeps within"
    " 10 % in hosts, but not in charged units.",
    "'daemon' asks the function that the daemon asks, and its hosts are pilots: they go on by the same"
    " rule, but not beyond their request, which is one unit longer than they were bought for, and start no"
    " task for which that leaves no time. With the papers' presets it buys for image, normal and testing"
    " what the published estimator buys, run by run. balanced and fast are conservative and aggressive but"
    " for the hosts beyond half of the tasks, which these bags never come near.",
)

LISTS = (
    "Published are, of the image rendering, the number of tasks, the mean, the deviation, the shortest (about"
    " 25 s) and the amplitude (about 9 minutes), which leave 252 of 256 runtimes open; of the software"
    " testing the number, the median, the mean, and that few are above 15 minutes, which leave 1,478 of 1,480"
    " open, and the deviation, too. Of the normal bags all is published.",
    "The rule: one smooth hump between the published ends; log-normal quantiles. No result had a part in it.",
    "The list of the image decides little: 19 to 26 % above the optimum with the preset conservative. That of"
    " the software testing decides more, 19 to 33 %: how many tasks are very long is not published.",
    "1,480 tasks of 60 s make 27 hosts. The paper's 29 need a mean of 62.5 to 64.6 s, which is 1 minute as"
    " well where seconds are not printed: with the last list, which has that, aggressive buys the paper's"
    " 35 % above the optimum.",
)

OMITTED = (
    ("2011, Fig. 1", "mean and deviation of each test in a week", "the measurements are not published"),
    (
        "2011, Fig. 2a; 2008, Fig. 2",
        "the image's runtimes in the order of the image",
        "the measurements are not published; Fig. 4a has ours at random",
    ),
    (
        "2011, Fig. 2b",
        "the same of an image of 1,008 objects",
        "the measurements are not published; all that is known is an amplitude of 7 minutes",
    ),
    (
        "2011, Figs 3, 5 and 7; 2008, Fig. 3",
        "pseudocode",
        "it is the code of adaptor/budget/provisioning/a2ha.py",
    ),
)

GRIDS = (
    "The paper of 2011 has 20 % (image) and 35 % (software testing) for suitable ratios. Ours: 19 to 22 % and"
    " 30 to 40 % with the presets, so they agree. That of 2008 has at most 12 %, ours 15 to 18 % by its rules"
    " as printed, which buy hosts without need; without these 7 to 10 %.",
    "As in the paper, higher ratios buy more and end sooner, and the deviation is the largest with a"
    " creationRatio of 1: the first finished tasks then decide alone, and what is bought stays bought.",
    "The possible tasks of a host are counted whole, as the paper's wording has it. About half a task per"
    " host is thereby taken to be impossible, a small bias towards too many hosts in all cells.",
    "No more hosts are bought than tasks wait. The paper does not say so, but a host beyond that has nothing"
    " to do; without it Table 2 would hold 240 hosts instead of its 129.",
    "2008 with a creationRatio of 1 buys exactly what seems necessary; below 1 it buys int(n·r)+1, at least"
    " one per finished task, even where none is necessary. So its hosts do not fall with the ratio.",
)

TABLE_1 = (
    "The paper says neither which ratios its table has nor whether it is a mean. For the image more units are"
    " charged here (23 instead of 19), because the mean over 200 orders holds those in which the first tasks"
    " are long. Interrupted and continued hosts agree in size, the more so with lower ratios.",
    "Wasted time does not agree: the paper's 25 minutes for 4 interrupted image tasks are 6 minutes each, of"
    " tasks that take 3.7 minutes in the mean. By its §3.5 those that have run longer than the mean go on, by"
    " its §4.3 these are interrupted. Here §3.5 is kept, and 1 to 2 minutes are lost.",
    "frugal interrupts more tasks on purpose: to go on costs a whole unit, to start anew some minutes.",
)

TABLE_2 = (
    "'as the table' agrees: payments within 1 %, hosts within 4 %, times and speedups for 100 and 50 first"
    " hosts within 5 %. The paper's 512 h for one host per task shows that this table, unlike the others, has"
    " no start-up, so ours has none.",
    "The text of §3.6 buys no new hosts where there would be more than half of all tasks, 128;"
    " 'conservative' keeps to it. 'half filled' buys as many as fill the half, which is sooner (4.3 to 4.6"
    " instead of 4.8 to 5.0 h) at the same payment; the daemon's presets do so. The table's 179 and 154"
    " are half of the tasks that the 100 and 50 first hosts leave, beside those hosts (178 and 153), and"
    " one: the paper's own table fills the half, and 'as the table' counts so. Some hosts more are bought"
    " late, in the place of hosts that have ended.",
    "With 1 first host the paper ends at 4.14 h, ours at 4.6 h: here the first tasks of the last hosts begin"
    " only when the corrected average, which grows as the first task runs, has called for all of them.",
)
