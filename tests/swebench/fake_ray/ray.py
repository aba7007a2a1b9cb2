"""A cluster of one process: as much of Ray as the driver uses, for tests without the package."""


def init(address, **_):
    if address != "here":
        raise ConnectionError(f"no cluster at {address}")


class Task:
    def __init__(self, function):
        self.function = function

    def options(self, **_):
        return self

    def remote(self, *arguments):
        return lambda: self.function(*arguments)


def remote(function):
    return Task(function)


def wait(tasks, num_returns):
    return tasks[:num_returns], tasks[num_returns:]


def get(task):
    return task()
