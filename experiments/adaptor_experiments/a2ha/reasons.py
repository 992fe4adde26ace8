"""Why our figures differ from the papers', and by which test or run each reason is held."""

from __future__ import annotations

import msgspec

_TESTS = "tests/experiments/a2ha/test_reasons.py::"


class Reason(msgspec.Struct, frozen=True):
    """Of a difference."""

    short: str
    text: str = ""
    """In full, with its numbers; empty: there is no more to say."""
    test: str = ""
    """By which it is held."""

    @property
    def remark(self) -> str:
        return f"{self.short}: {self.text} ({_TESTS}{self.test})"


AGREES = Reason("agrees")
NOT_SAID = Reason("of what is not said")
OPTIMUM = Reason(
    "the minute is not 60 s",
    "1,480 tasks of 60 s are 26.9 hosts of 55 minutes; the paper's 29 need a mean of more than 62.4 s",
    "test_the_papers_29_hosts_need_a_longer_mean_than_its_minute",
)
FINAL = Reason(
    "drawn without start-up",
    "256 · 220 s are 15.6 units of a whole hour, and 17.1 of 55 minutes, which the paper's optimum counts",
    "test_the_predictions_of_figure_4_are_drawn_without_a_start_up",
)
ONE_ORDER = Reason(
    "one order",
    "it predicts so where the first task takes 300 to 320 s; half of our orders predict less than the optimum"
    " after one task",
    "test_the_first_prediction_depends_on_the_first_task",
)
ROUNDED_DOWN = Reason(
    "rounded down",
    "ceil(23 · 0.4), as printed in Fig. 5, is 10; 9 is int(23 · 0.4), the rounding of 2008",
    "test_the_9_hosts_of_figure_6_are_rounded_down",
)
SUITABLE = Reason(
    "ratios not named",
    "the paper says that suitable ratios keep within these; ours do so with 0.5 and 0.5 (in brackets the"
    " least and the most of all ratios). Above 29 hosts, 35 % are 39; ours are above 27",
    "test_with_middle_ratios_the_excess_is_within_what_the_paper_says",
)
FIRST_TASKS = Reason(
    "the first tasks decide",
    "how many hosts an extreme order buys is decided by its first tasks, and so by the list",
    "test_the_orders_with_long_first_tasks_buy_most",
)
PLUS_ONE = Reason(
    "bought without need",
    "line 15 as printed buys a host after each finished task even where none is necessary; were it skipped"
    " there, the excess would be within 12 %",
    "test_2008_is_within_12_percent_where_nothing_is_bought_without_need",
)
HEAVY_FIRST = Reason(
    "long first tasks",
    "orders that begin with long tasks buy many hosts, which the mean holds; the paper does not say whether"
    " its number is a mean. Some of our orders are charged as much as the paper's, or less",
    "test_some_orders_are_charged_what_table_1_says",
)
LOW_RATIOS = Reason(
    "ratios not named",
    "with low ratios (0 and 0.25), which buy late, more are interrupted, and the paper's numbers are those of"
    " ordinary orders",
    "test_the_lowest_ratios_interrupt_and_continue_as_table_1_says",
)
WASTED = Reason(
    "the paper's rules differ",
    "by §3.5 an interrupted task has run for less than the mean, so that 4 of the image waste 15 minutes at"
    " most, and 8 of the software testing 8. §4.3 says the contrary, that those are interrupted which have"
    " run longer; done so, each of the image wastes more than its mean as in the paper, but fewer are"
    " interrupted",
    "test_interrupted_tasks_have_run_for_less_than_the_mean",
)
HALF_OF_THE_REST = Reason(
    "some bought late",
    "179 and 154 are the first hosts, half of the tasks that these leave, and one; ours are these and some"
    " that are bought late, in the place of hosts that have ended",
    "test_table_2_fills_half_of_what_the_first_hosts_leave",
)
FOUND_OUT_LATE = Reason(
    "found out later",
    "with 128 hosts from the beginning the bag takes 4.1 h: the paper's are there almost at once. Ours are"
    " bought as the corrected mean grows with the time that the first task has run; as printed, Fig. 7"
    " divides a sum of means by a number of tasks, which is no time",
    "test_half_as_many_hosts_as_tasks_at_once_take_as_long_as_the_paper_says",
)
NO_STARTUP = Reason(
    "agrees without start-up",
    "with the 5 minutes of the other bags the payment would be 529 h",
    "test_table_2_has_no_start_up",
)
AS_MADE = Reason(
    "agrees: made so", "the list has what is published", "test_the_image_list_has_all_that_is_published"
)

ALL = tuple(each for each in globals().values() if isinstance(each, Reason))
