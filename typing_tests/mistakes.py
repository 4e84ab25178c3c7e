"""Mistakes that checkers have to report: an ignore comment without one is an error here."""

# pyright: basic, reportUnnecessaryTypeIgnoreComment=true

import ggarray as xp
from ggarray import Array, linalg
from ggarray.interface import HOST, Backend, BufferType, Events, Op, Tensor, Usage, alloc_tensors


class Nothing(Backend):
    name = "computes nothing"


class Never(Events):
    def event_new(self) -> int:
        return 0


def names(x: Array) -> None:
    _ = xp.bfloat61  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue]
    _ = x.transposed  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue]
    _ = linalg.svd(x).V  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue]
    _ = x.dtype.itemsizes  # type: ignore[union-attr]  # pyright: ignore[reportAttributeAccessIssue]
    _ = Op.DIVIDE  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue]
    _ = Usage.MODEL  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue]


def memory(x: Tensor) -> None:
    HOST.alloc("64")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    alloc_tensors(x, HOST, 1)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    BufferType("far")  # type: ignore[abstract]  # pyright: ignore[reportAbstractUsage]
    Never()  # type: ignore[abstract]  # pyright: ignore[reportAbstractUsage]
    x.offset = 64  # type: ignore[misc]  # pyright: ignore[reportAttributeAccessIssue]


def operands(x: Array) -> None:
    _ = x + "1"  # type: ignore[arg-type]  # pyright: ignore[reportOperatorIssue]
    _ = x @ 2  # type: ignore[operator]  # pyright: ignore[reportOperatorIssue]
    _ = x < None  # type: ignore[arg-type]  # pyright: ignore[reportOperatorIssue]
    _ = x - {1}  # type: ignore[arg-type]  # pyright: ignore[reportOperatorIssue]
    xp.abs(1.0)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    xp.add(x, [1, 2])  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    xp.clip(x, min="0")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    xp.matmul(x, [[1.0]])  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    xp.evaluate([x])  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]


def arguments(x: Array) -> None:
    xp.sum(x, 0)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    xp.mean(x, axis=0.5)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    xp.zeros("23")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    xp.asarray([1], dtype=3)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    xp.ones(3, device=0)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    xp.meshgrid(x, indexing="ji")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    xp.quantize(x, xp.float32)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    xp.fft.fft(x, norm="both")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    linalg.qr(x, mode="full")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    linalg.matrix_norm(x, ord="f")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]


def settings(x: Array) -> None:
    x.shape = (2, 3)  # type: ignore[misc]  # pyright: ignore[reportAttributeAccessIssue]
    xp.set_num_threads("2")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    xp.load_gguf(3)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    Nothing()  # type: ignore[abstract]  # pyright: ignore[reportAbstractUsage]
    with xp.default_device(0):  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
        pass
