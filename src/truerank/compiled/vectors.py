"""LLVM vector instructions, for the few loops that numba's own vectoriser does not do justice."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils

INDEX, LANE = ir.IntType(64), ir.IntType(32)


def vector_of(array: types.Array) -> ir.VectorType:
    """Return 256 bits of the array's numbers, which LLVM splits where registers are shorter."""
    number = ir.FloatType() if array.dtype.bitwidth == 32 else ir.DoubleType()
    return ir.VectorType(number, 256 // array.dtype.bitwidth)


def pointer(context: Any, builder: ir.IRBuilder, array: types.Array, value: Any, at: Any) -> Any:
    return builder.gep(context.make_array(array)(context, builder, value).data, [at])


def load(builder: ir.IRBuilder, vector: ir.VectorType, pointer: Any, at: Any) -> Any:
    address = builder.bitcast(builder.gep(pointer, [at]), vector.as_pointer())
    return builder.load(address, align=4)


def splat(builder: ir.IRBuilder, vector: ir.VectorType, pointer: Any, at: Any) -> Any:
    return spread(builder, vector, builder.load(builder.gep(pointer, [at])))


def spread(builder: ir.IRBuilder, vector: ir.VectorType, scalar: Any) -> Any:
    one = builder.insert_element(ir.Constant(vector, ir.Undefined), scalar, LANE(0))
    lanes = ir.Constant(ir.VectorType(LANE, vector.count), [0] * vector.count)
    return builder.shuffle_vector(one, one, lanes)


def llvm(builder: ir.IRBuilder, name: str, result: Any, arguments: list[Any]) -> Any:
    signature = ir.FunctionType(result, arguments)
    return cgutils.get_or_insert_function(builder.module, signature, f"llvm.{name}")


def fma_of(builder: ir.IRBuilder, number: Any) -> Any:
    element = getattr(number, "element", number)
    suffix = {"float": "f32", "double": "f64"}[str(element)]
    lanes = f"v{number.count}" if isinstance(number, ir.VectorType) else ""
    return llvm(builder, f"fma.{lanes}{suffix}", number, [number] * 3)


def loop(builder: ir.IRBuilder, start: Any, stop: Any, step: int, sums: list[Any], body: Callable) -> list[Any]:
    """Emit ``for i in range(start, stop, step): sums = body(i, sums)``, and return the sums."""
    before, inside, after = builder.block, builder.append_basic_block(), builder.append_basic_block()
    builder.cbranch(builder.icmp_signed("<", start, stop), inside, after)
    builder.position_at_end(inside)
    i, *old = (builder.phi(value.type) for value in [start, *sums])
    new = body(i, old)
    following = builder.add(i, INDEX(step))
    builder.cbranch(builder.icmp_signed("<", following, stop), inside, after)
    builder.position_at_end(after)
    results = [builder.phi(value.type) for value in sums]
    for phi, first, next_ in zip([i, *old, *results], [start, *sums, *sums], [following, *new, *new], strict=True):
        phi.add_incoming(first, before)
        phi.add_incoming(next_, inside)
    return results
