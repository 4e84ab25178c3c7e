"""Random programs that run on ggarray and on NumPy side by side, NumPy being the judge.

A program is a sequence of statements on variables; each variable is a pair of an Array and the
ndarray that must have the same values after every statement. Integers make equality exact.
"""

import random
import re

import numpy as np
import pytest

import ggarray as xp


class MismatchError(AssertionError):
    """A variable's value differs from NumPy's; the message has the program."""


class Program:
    """One random program; `run` executes and checks it."""

    def __init__(self, seed, device, dtype=np.int64):
        self.random = random.Random(seed)
        self.device = device
        self.dtype = np.dtype(dtype)
        self.pairs = []
        self.backend = None  # whose evaluations are interrupted
        self.exports = []  # pairs of arrays that were given out
        self.log = [f"seed {seed}, {device}, {self.dtype}"]

    def run(self, steps):
        """Execute `steps` statements and check every variable."""
        self.execute(self.statements(), steps)
        self.check_all()

    def run_recording_only(self, steps):
        """The same with statements that compute nothing, on a backend that may fail at reads."""
        self.execute([self.matmul, self.matmul, self.view_of_matrix, self.delete], steps)
        self.check_all(xp.BackendError)

    def run_interrupted(self, steps, backend):
        """The same where other statements come in the middle of evaluations, as of a handler."""
        self.backend = backend
        self.run(steps)

    def execute(self, statements, steps):
        self.log.append("create")
        self.create()
        for _ in range(steps):
            statement = self.random.choice(statements)
            self.log.append(statement.__name__)
            statement()

    def statements(self):
        frequent = [self.matmul, self.view, self.set_item, self.update, self.add]
        return frequent * 3 + [
            self.create,
            self.outer,
            self.tensordot,
            self.vecdot,
            self.scale,
            self.negate,
            self.delete,
            self.export,
            self.write_through_export,
            self.write_through_export,
            self.drop_export,
            self.evaluate_some,
            self.check_one,
            self.mistake,
            self.share_foreign,
            self.evaluate_then_update,
        ]

    # -- choosing -------------------------------------------------------------------------------

    def note(self, text):
        self.log[-1] += " " + text

    def pick(self, condition=lambda a: True):
        """Return a random index of a variable that fits, or None."""
        fitting = [i for i, (_, a) in enumerate(self.pairs) if condition(a)]
        return self.random.choice(fitting) if fitting else None

    def put(self, x, a):
        self.pairs.append((x, np.asarray(a)))
        self.note(f"-> v{len(self.pairs) - 1}{np.shape(a)}")
        while len(self.pairs) > 12:
            del self.pairs[self.random.randrange(len(self.pairs))]

    def values(self, shape):
        rng = np.random.default_rng(self.random.randrange(2**32))
        return rng.integers(-4, 5, shape).astype(self.dtype)

    # -- statements -----------------------------------------------------------------------------

    def create(self):
        shape = tuple(
            self.random.choice([1, 2, 3, 3, 3]) for _ in range(self.random.choice([1, 2, 2, 2, 3]))
        )
        a = self.values(shape)
        self.put(xp.asarray(a, device=self.device), a.copy())

    def share_foreign(self):
        a = self.values((3, 3))
        x = xp.asarray(a, device=self.device, copy=False)
        self.exports.append((a, a))
        self.put(x, a)

    def view(self):
        i = self.pick(lambda a: a.ndim > 0)
        if i is None:
            return
        x, a = self.pairs[i]
        how = self.random.randrange(6)
        self.note(f"v{i} kind {how}")
        if how == 0 and a.ndim >= 2:
            self.put(x.mT, a.swapaxes(-1, -2))
        elif how == 1:
            start = self.random.randrange(a.shape[0] + 1)
            step = self.random.choice([1, 2, -1])
            self.put(x[start::step], a[start::step])
        elif how == 2 and a.ndim >= 2 and a.shape[0]:
            at = self.random.randrange(a.shape[0])
            self.put(x[at], a[at])
        elif how == 3:
            self.put(xp.expand_dims(x, axis=0), a[None])
        elif how == 4:
            self.put(xp.reshape(x, (-1,)), a.reshape(-1))
        elif how == 5 and a.ndim >= 2:
            key = (..., slice(None, None, self.random.choice([1, 2])))
            self.put(x[key], a[key])

    def view_of_matrix(self):
        i = self.pick(lambda a: a.ndim >= 2)
        if i is not None:
            x, a = self.pairs[i]
            self.put(x.mT, a.swapaxes(-1, -2))

    def set_item(self):
        i = self.pick(lambda a: a.ndim > 0 and a.size and a.flags.writeable)
        if i is None:
            return
        x, a = self.pairs[i]
        at = self.random.randrange(a.shape[0])
        j = self.pick(lambda b: b.shape == a[at].shape)
        self.note(f"v{i}[{at}] = {'v' + str(j) if j is not None else 'scalar'}")
        if j is None:
            x[at], a[at] = 7, 7
        else:
            y, b = self.pairs[j]
            value = b.copy()  # NumPy would read what it has just written
            x[at] = y if not np.shares_memory(a, b) else xp.asarray(value, device=self.device)
            a[at] = value

    def evaluate_then_update(self):
        """Compute an array and a view of it, then update one through the other."""
        i = self.pick(lambda a: a.ndim == 2 and a.shape[0] == a.shape[1])
        if i is not None:
            x, a = self.pairs[i]
            product, view = x @ x, a @ a
            transposed = product.T
            xp.evaluate(product, transposed)
            transposed += x @ x
            view.T[...] += a @ a
            self.put(product, view)

    def update(self):
        i = self.pick(lambda a: a.flags.writeable)
        if i is None:
            return
        x, a = self.pairs[i]
        j = self.pick(lambda b: fits(a, b) and np.broadcast_shapes(a.shape, b.shape) == a.shape)
        if j is None:
            return
        y, b = self.pairs[j]
        subtract = self.random.random() < 0.3
        self.note(f"v{i} {'-' if subtract else '+'}= v{j}")
        b = b.copy()
        if subtract:
            x -= y
            a -= b
        else:
            x += y
            a += b

    def matmul(self):
        i = self.pick(lambda a: a.ndim > 0)
        if i is None:
            return
        x, a = self.pairs[i]
        j = self.pick(lambda b: fits_matmul(a, b))
        if j is None:
            return
        y, b = self.pairs[j]
        self.note(f"v{i} @ v{j}")
        self.put(x @ y, a @ b)

    def outer(self):
        i, j = self.pick(lambda a: a.ndim == 1), self.pick(lambda a: a.ndim == 1)
        if i is None:
            return
        (x, a), (y, b) = self.pairs[i], self.pairs[j]
        self.note(f"outer v{i} v{j}")
        self.put(xp.linalg.outer(x, y), np.multiply.outer(a, b))

    def tensordot(self):
        i = self.pick(lambda a: a.ndim > 0)
        if i is None:
            return
        x, a = self.pairs[i]
        j = self.pick(lambda b: b.ndim > 0 and b.shape[0] == a.shape[-1])
        if j is None:
            return
        y, b = self.pairs[j]
        self.note(f"tensordot v{i} v{j}")
        if a.ndim + b.ndim < 6:
            self.put(xp.tensordot(x, y, axes=1), np.tensordot(a, b, axes=1))

    def vecdot(self):
        i = self.pick(lambda a: a.ndim > 0)
        if i is None:
            return
        x, a = self.pairs[i]
        j = self.pick(lambda b: b.shape == a.shape)
        y, b = self.pairs[j]
        self.note(f"vecdot v{i} v{j}")
        self.put(xp.vecdot(x, y), np.asarray((a * b).sum(axis=-1)))

    def add(self):
        i = self.pick()
        if i is None:
            return
        x, a = self.pairs[i]
        j = self.pick(lambda b: fits(a, b))
        if j is None:
            return
        y, b = self.pairs[j]
        self.note(f"v{i} +- v{j}")
        if self.random.random() < 0.5:
            self.put(x + y, a + b)
        else:
            self.put(x - y, a - b)

    def scale(self):
        i = self.pick()
        if i is None:
            return
        x, a = self.pairs[i]
        alpha = self.random.choice([-2, 2, 3])
        self.note(f"{alpha} * v{i}")
        self.put(alpha * x, alpha * a)

    def negate(self):
        i = self.pick()
        if i is None:
            return
        x, a = self.pairs[i]
        self.note(f"- v{i}")
        self.put(-x, -a)

    def delete(self):
        if self.pairs:
            i = self.random.randrange(len(self.pairs))
            self.note(f"v{i}")
            del self.pairs[i]

    def export(self):
        i = self.pick(lambda a: a.ndim > 0)
        if i is None:
            return
        x, a = self.pairs[i]
        self.note(f"v{i}")
        self.exports.append((np.asarray(x) if self.random.random() < 0.7 else np.from_dlpack(x), a))

    def write_through_export(self):
        fitting = [
            (e, a) for e, a in self.exports if e.size and e.flags.writeable and a.flags.writeable
        ]
        if fitting:
            e, a = self.random.choice(fitting)
            e[0] = a[0] = 9

    def drop_export(self):
        if self.exports:
            del self.exports[self.random.randrange(len(self.exports))]

    def evaluate_some(self):
        some = [x for x, _ in self.pairs if self.random.random() < 0.4]
        if self.backend is None:
            xp.evaluate(*some)
            return
        self.backend.before = self.interrupt
        try:
            xp.evaluate(*some)
        finally:
            self.backend.before = None

    def interrupt(self):
        """Execute some statements; evaluations of theirs are not interrupted."""
        before, self.backend.before = self.backend.before, None
        frequent = [self.check_one, self.evaluate_some, self.set_item, self.update]
        while self.random.random() < 0.4:
            statement = self.random.choice(self.statements() + 6 * frequent)
            self.log.append(f"(within) {statement.__name__}")
            backend, self.backend = self.backend, None
            try:
                statement()
            finally:
                self.backend = backend
        self.backend.before = before

    def check_one(self):
        i = self.pick()
        if i is not None:
            self.check(*self.pairs[i])

    def mistake(self):
        i = self.pick(lambda a: a.ndim == 2)
        if i is None:
            return
        x, a = self.pairs[i]
        wrong = xp.ones((a.shape[1] + 1, 2), dtype=self.dtype, device=self.device)
        shapes = re.escape(f"{a.shape} and {wrong.shape}")
        with pytest.raises(ValueError, match=shapes):
            x @ wrong

    # -- judging --------------------------------------------------------------------------------

    def check(self, x, a):
        assert x.shape == a.shape, self.log
        value = np.array(x)
        same = np.array_equal(value, a) if self.dtype.kind == "i" else np.allclose(value, a)
        if not same:
            raise MismatchError("\n".join([*self.log, f"{value} is not {a}"]))

    def check_all(self, failing=()):
        order = list(self.pairs)
        self.random.shuffle(order)
        for x, a in order:
            for _ in range(50):
                try:
                    self.check(x, a)
                    break
                except failing:
                    continue


def fits(a, b):
    try:
        np.broadcast_shapes(a.shape, b.shape)
    except ValueError:
        return False
    return True


def fits_matmul(a, b):
    if b.ndim == 0:
        return False
    inner = b.shape[-2] if b.ndim > 1 else b.shape[0]
    if a.shape[-1] != inner:
        return False
    try:
        batch = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    except ValueError:
        return False
    return len(batch) < 3
