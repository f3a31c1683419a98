"""Additions of whole vectors of outputs, for tables whose rows are looked up by codes.

They are written in the compiler's own terms, because it cannot know that the outputs do not overlap the table, and
would add one number at a time (measured: four times as slow for ten outputs).
"""

from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

LANES = 16  # outputs in a vector: a cache line of float32


@intrinsic
def add_rows(typing_context: Any, out: Any, at: Any, table: Any, places: Any) -> Any:
    """Add the sum of table[p : p + LANES] over the tuple ``places`` to out[at : at + LANES]; both arrays are flat."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        out_type, _, table_type, places_type = signature.args
        element = context.get_data_type(table_type.dtype)
        vector = ir.VectorType(element, LANES).as_pointer()
        size = context.get_abi_sizeof(element)

        def place(kind: Any, array: Any, index: Any) -> Any:
            data = context.make_array(kind)(context, builder, array).data
            return builder.bitcast(builder.gep(data, [index]), vector)

        target = place(out_type, arguments[0], arguments[1])
        indices = cgutils.unpack_tuple(builder, arguments[3], places_type.count)
        vectors = [builder.load(place(table_type, arguments[2], p), align=size) for p in indices]
        vectors.append(builder.load(target, align=size))
        while len(vectors) > 1:  # add as a tree, so that no addition waits for all earlier ones
            neighbours = [vectors[k : k + 2] for k in range(0, len(vectors), 2)]
            vectors = [builder.fadd(*pair) if len(pair) == 2 else pair[0] for pair in neighbours]
        builder.store(vectors[0], target, align=size)
        return context.get_dummy_value()

    return types.void(out, at, table, places), generate
