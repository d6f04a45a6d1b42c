"""Which statements compile. Each statement becomes the body of a function; many functions are one
translation unit. An error counts for the statement in whose function it is reported, or that a
template was instantiated for."""
import concurrent.futures
import pathlib
import re
import subprocess

PLACE = re.compile(r"row:(\d+)")
ERROR = re.compile(r"(?:^|: )(?:fatal )?error: ")


class Compiler:
    def __init__(self, command, fixtures, work, jobs):
        """command: the compiler and its flags. fixtures: the header that each unit includes."""
        self.command, self.fixtures, self.work, self.jobs = command, fixtures, work, jobs
        self.units = 0

    def errors(self, statements):
        """Compiles the statements {key: text} as one unit. Returns {key: message of its first
        error}."""
        keys = list(statements)
        lines = [f'#include "{self.fixtures}"']
        for n, key in enumerate(keys):
            lines += [f'#line 1 "row:{n}"', f"void row_{n}() {{ {statements[key]}; }}"]
        self.units += 1
        path = pathlib.Path(self.work) / f"unit_{self.units}_{len(keys)}.cpp"
        path.write_text("\n".join(lines) + "\n")
        run = subprocess.run(
            [*self.command, str(path)], capture_output=True, text=True, check=False
        )
        found, last, lost = {}, None, ""
        for line in run.stderr.split("\n"):
            place = PLACE.search(line)
            if place:
                last = int(place[1])
            if line.startswith("In file included"):
                last = None
            if ERROR.search(line):
                message = ERROR.split(line, maxsplit=1)[1]
                if last is None:
                    lost = lost or message
                else:
                    found.setdefault(keys[last], message)
        if run.returncode and not found and not lost:
            raise SystemExit(f"{path}: the compiler failed without an error:\n{run.stderr[:2000]}")
        # An error inside of a constructor that is inherited names no row: halves show whose it is.
        rest = {key: text for key, text in statements.items() if key not in found}
        if lost and len(rest) > 1:
            middle = list(rest)[: len(rest) // 2]
            for half in (middle, [key for key in rest if key not in set(middle)]):
                found.update(self.errors({key: rest[key] for key in half}))
        elif lost and rest:
            found[next(iter(rest))] = lost
        return found

    def failures(self, statements, size=400):
        """Returns {key: message} of the statements that do not compile. A compiler may report an
        error once for two statements, so those without one are compiled again without the others
        until a unit has no error."""
        failed, rest = {}, dict(statements)
        while rest:
            keys = list(rest)
            parts = [
                {key: rest[key] for key in keys[at : at + size]}
                for at in range(0, len(keys), size)
            ]
            with concurrent.futures.ThreadPoolExecutor(self.jobs) as pool:
                results = list(pool.map(self.errors, parts))
            again = {}
            for part, result in zip(parts, results):
                failed.update(result)
                if result:
                    again.update({key: text for key, text in part.items() if key not in result})
            rest = again
        return failed
