"""Where our figures agree with the papers', where not, and why."""

from __future__ import annotations

HOSTS = (
    "Optimal is the work over the usable time of a unit, rounded up (footnote 6 of 2011): 18, 12 and 29 as"
    " in the paper. The presets of 2008 are measured without a start-up, as in that paper, so that their"
    " optimum is lower; the demo's unit has its start-up in all of them.",
    "As in the papers, 13 hosts make speedups of 9 to 10 (2011) and 11 to 12 (2008).",
    "The task lists of the papers are not published. The synthetic bags have the published number of tasks,"
    " mean and deviation (image) or median and mean (software testing); the shape between them is ours.",
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

GRIDS = (
    "The paper of 2011 has 20 % (image) and 35 % (software testing) for suitable ratios, that of 2008 at most"
    " 12 %. Ours: image 21 % and software testing 26 to 36 % with the presets, so they agree; 2008 is 14 to"
    " 19 % with its presets (periodic steps keep the ratio, every host ends at its unit), somewhat above what"
    " the paper says.",
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
    "The paper says neither which ratios its table has nor whether it is a mean. Conservative comes nearest:"
    " interrupted and continued hosts agree in size. For the image more units are charged here (23 instead of"
    " 19), because the mean over 200 orders holds those in which the first tasks are long.",
    "Wasted time does not agree: the paper's 25 minutes for 4 interrupted image tasks are 6 minutes each, of"
    " tasks that take 3.7 minutes in the mean, although those that have run longer than the mean go on. Here"
    " an interrupted task has run for less than the mean, and 1 to 2 minutes are lost.",
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
