"""Lowering: which operands of products are converted, once each, and to what."""

import numpy as np
import pytest
from recorded import captured, graph_of, outputs_of, quantized, random_arrays, wide
from values import numbers

import ggarray as xp
from ggarray._graph.lower import lower
from ggarray.interface import PRODUCTS, Op

FLOAT32, FLOAT64 = np.dtype(np.float32), np.dtype(np.float64)


def ones(*shape, dtype=xp.float64, device="counting"):
    return xp.ones(shape, dtype=dtype, device=device)


def copies(graph):
    """Return from which operand to which dtype values are converted."""
    return [(each.operands[0], each.dtype) for each in graph.vertices if each.op is Op.COPY]


def products(graph):
    return [each.operands for each in graph.vertices if each.op in PRODUCTS]


def test_a_graph_that_needs_no_conversion_is_returned():
    x = ones(2, 2)
    graph = captured((x @ x).T @ x + 2.0 * xp.linalg.outer(x[0], x[0])).graph()
    assert lower(graph) is graph


def test_one_conversion_for_all_products():
    x, y, single = ones(2, 2), ones(2, 2), ones(2, 2, dtype=xp.float32)
    graph = graph_of(single @ x, y @ single, single @ single, xp.linalg.outer(single[0], x[0]))
    assert copies(graph) == [(~0, FLOAT64), (~3, FLOAT64)]
    copy, product, *_ = graph.vertices
    assert (copy.device, copy.origin, product.origin) == ("counting", 0, 0)
    assert [vertex.origin for vertex in graph.vertices] == [0, 0, 1, 2, 3, 3]
    assert graph.outputs == (1, 2, 3, 5)
    assert products(graph) == [(0, ~1), (~2, 0), (~0, ~0), (4, ~4)]


def test_integers_of_two_kinds():
    x, narrow = ones(2, 2, dtype=xp.int64), ones(2, 2, dtype=xp.int8)
    graph = graph_of(narrow @ narrow, narrow @ x)
    assert copies(graph) == [(~0, np.dtype(np.int64))]
    assert [each.dtype for each in graph.vertices] == [np.int8, np.int64, np.int64]


def test_sums_take_operands_of_any_dtype():
    x, single = ones(2, 2), ones(2, 2, dtype=xp.float32)
    assert copies(graph_of(x @ x + single)) == []


def test_pending_operands_are_converted():
    single, x = ones(2, 2, dtype=xp.float32), ones(2, 2)
    graph = graph_of((single @ single) @ x)
    assert copies(graph) == [(0, FLOAT64)]
    assert products(graph) == [(~0, ~0), (1, ~1)]


def test_quantized_weights_stay():
    weights, _ = quantized(np.ones((64, 64)))
    single = ones(2, 64, dtype=xp.float32, device="cpu")
    for product in (single @ weights, single @ weights.mT, weights @ single.T, weights @ single[0]):
        assert copies(graph_of(product)) == []


def test_quantized_weights_in_double_precision_are_decoded_first():
    weights, _ = quantized(np.ones((64, 64)))
    x = ones(2, 64, device="cpu")
    graph = graph_of(x @ weights, x @ weights.mT)
    assert copies(graph) == [(~1, FLOAT32), (0, FLOAT64), (~2, FLOAT32), (3, FLOAT64)]


def test_one_of_two_quantized_operands_stays():
    left, _ = quantized(np.ones((32, 64)))
    right, _ = quantized(np.ones((64, 32)))
    graph = graph_of(left @ right)
    assert copies(graph) == [(~1, FLOAT32)]
    assert products(graph) == [(~0, 0)]
    graph = graph_of(left @ left.mT, left @ right)
    assert copies(graph) == [(~1, FLOAT32), (~2, FLOAT32)]


def test_quantized_vectors_of_an_outer_product_are_decoded():
    weights, _ = quantized(np.ones((2, 32)))
    graph = graph_of(xp.linalg.outer(weights[0, :], weights[0, :]))
    assert copies(graph) == [(~0, FLOAT32)]
    assert products(graph) == [(0, 0)]


def test_blocks_along_an_axis_of_batches_are_decoded():
    weights, _ = quantized(np.ones((2, 3, 32)))
    blocks = xp.permute_dims(weights, (2, 0, 1))
    graph = graph_of(blocks @ ones(3, 4, dtype=xp.float32, device="cpu"))
    assert copies(graph) == [(~0, FLOAT32)]


@pytest.mark.parametrize("seed", range(10))
def test_random_graphs_keep_their_values_and_need_no_more(seed):
    x = xp.asarray(0.3 * numbers((3, 3), float), device="counting")
    y = xp.asarray(0.3 * numbers((3, 3), np.float32), device="counting")
    arrays = [*random_arrays(x, seed, 12), *random_arrays(y, seed, 12)]
    arrays += [a @ b for a, b in zip(arrays, reversed(arrays), strict=True)]
    taken = captured(*arrays)
    graph = taken.graph()
    lowered = lower(graph)
    assert lower(lowered) == lowered
    for vertex in lowered.vertices:
        if vertex.op in PRODUCTS:
            assert all(lowered.tensor(ref).dtype == vertex.dtype for ref in vertex.operands)
    assert len(set(copies(lowered)) - set(copies(graph))) == len(copies(lowered)) - len(
        copies(graph)
    )
    before, after = outputs_of(graph, taken.leaves), outputs_of(lowered, taken.leaves)
    for value, expected in zip(after, before, strict=True):
        np.testing.assert_array_equal(value, expected)


@pytest.mark.parametrize("device", ["cpu", "blas"])
def test_values_after_conversion(device):
    weights, decoded = quantized(numbers((64, 64), float), device=device)
    row = numbers((2, 64), np.float32)
    x, y = (xp.asarray(row, dtype=dtype, device=device) for dtype in (xp.float32, xp.float64))
    arrays = [x @ weights, y @ weights.mT, weights @ weights, xp.linalg.outer(weights[0, :], x[0])]
    xp.evaluate(*arrays)
    row = wide(row)
    expected = [row @ decoded, row @ decoded.T, decoded @ decoded, np.outer(decoded[0], row[0])]
    for array, value in zip(arrays, expected, strict=True):
        np.testing.assert_allclose(np.asarray(array), value, rtol=1e-5, atol=1e-4)
