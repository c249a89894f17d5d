"""Canonical tensors to a file's and back: order, names, layout, dtype, batch."""

from __future__ import annotations

import numpy as np
import pytest

from backends.base import ModelRejected, TensorInfo
from harness.artifacts import Port
from harness.runner.jobs import file_shape
from harness.worker.tensors import TensorMap

IMAGE = Port("image", "x", "float32", (0, 3, 4, 5), "nhwc")


def test_a_picture_goes_to_nhwc_and_back() -> None:
    picture = np.arange(60, dtype=np.float64).reshape(1, 3, 4, 5)
    tensors = TensorMap([IMAGE], [TensorInfo("x", "float32", (1, 4, 5, 3))])
    (array,) = tensors.to_file([{"image": picture}])
    assert array.shape == (1, 4, 5, 3)
    assert array.dtype == np.float32
    assert array.flags.c_contiguous
    assert array[0, 1, 2, 0] == picture[0, 0, 1, 2]
    np.testing.assert_array_equal(tensors.to_canonical([array])["image"], picture)


def test_samples_are_stacked_to_a_batch() -> None:
    tensors = TensorMap([Port("a", "a", "float32", (0, 2))], [TensorInfo("a", "float32", (3, 2))])
    (array,) = tensors.to_file([{"a": np.full((1, 2), n)} for n in range(3)])
    assert array.tolist() == [[0, 0], [1, 1], [2, 2]]


def test_the_session_s_order_counts_and_roles_the_file_lacks_are_left_out() -> None:
    ports = [Port("ids", "input_ids", "int64", (0, 2)), Port("mask", "attention", "int64", (0, 2))]
    infos = [TensorInfo("attention", "int32", (1, 2)), TensorInfo("input_ids", "int32", (1, 2))]
    tensors = TensorMap(ports, infos)
    sample = {"ids": np.array([[7, 8]]), "mask": np.array([[1, 0]]), "unused": np.zeros((1, 1))}
    arrays = tensors.to_file([sample])
    assert [array.tolist() for array in arrays] == [[[1, 0]], [[7, 8]]]
    assert {array.dtype for array in arrays} == {np.dtype("int32")}
    assert tensors.index_of("ids") == 1


def test_the_one_tensor_there_is_may_bear_another_name() -> None:
    tensors = TensorMap([Port("a", "a", "float32", (1,))], [TensorInfo("serving_default_a:0", "float32", (1,))])
    assert tensors.to_file([{"a": np.ones(1)}])[0].tolist() == [1.0]


def test_what_does_not_fit_is_said() -> None:
    two = [Port("a", "a", "float32", (1,)), Port("b", "b", "float32", (1,))]
    with pytest.raises(ModelRejected, match="has a tensor 'c' that its description does not name"):
        TensorMap(two, [TensorInfo("a", "float32", (1,)), TensorInfo("c", "float32", (1,))])
    tensors = TensorMap(two, [TensorInfo("a", "float32", (1,)), TensorInfo("b", "float32", (1,))])
    with pytest.raises(ModelRejected, match="gives no input 'b'"):
        tensors.to_file([{"a": np.ones(1)}])
    with pytest.raises(ModelRejected, match="gives 'a' the shape 2, the loaded model wants 1"):
        tensors.to_file([{"a": np.ones(2), "b": np.ones(1)}])


def test_results_do_not_share_memory_with_the_runtime_s_buffers() -> None:
    tensors = TensorMap([Port("a", "a", "float32", (2,))], [TensorInfo("a", "float32", (2,))])
    buffer = np.ones(2, np.float32)
    kept = tensors.to_canonical([buffer])["a"]
    buffer[:] = 5
    assert kept.tolist() == [1.0, 1.0]


def test_a_port_s_shape_in_the_file_s_layout() -> None:
    assert file_shape(IMAGE, 8) == [8, 4, 5, 3]
    assert file_shape(Port("state", "state", "float32", (2, 1, 128)), 8) == [2, 1, 128]
    assert file_shape(Port("free", "free", "float32", (0, 0)), 8) == [8, 1]
