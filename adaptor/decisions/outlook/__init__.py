"""When a bag will be done: possible runtimes of its tasks on possible futures of the queues."""
