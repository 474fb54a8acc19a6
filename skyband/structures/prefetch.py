"""A hint to the processor: fetch this into the cache, nobody waits for it."""

from typing import TYPE_CHECKING, Any

from numba import config

__all__ = ["prefetch"]

if TYPE_CHECKING or config.DISABLE_JIT:

    def prefetch(array: Any, place: tuple[int, ...]) -> None:
        """Begin to bring the cache line of ``array[place]`` (C-contiguous) in; any place will do, none is checked.

        A load would do the same, but what comes after it waits once a few of them are on their way.
        """

else:
    from llvmlite import ir
    from numba import types
    from numba.core import cgutils
    from numba.extending import intrinsic

    @intrinsic
    def prefetch(typing_context, array, place):
        """Write the call of LLVM's hint."""

        def generate(context, builder, signature, arguments):
            kind = signature.args[0]
            view = context.make_array(kind)(context, builder, arguments[0])
            indexes = [
                context.cast(builder, index, given, types.intp)
                for index, given in zip(cgutils.unpack_tuple(builder, arguments[1]), signature.args[1], strict=True)
            ]
            at = cgutils.get_item_pointer(context, builder, kind, view, indexes, wraparound=False)
            number = ir.IntType(32)
            hint = ir.FunctionType(ir.VoidType(), [cgutils.voidptr_t, number, number, number])
            function = cgutils.get_or_insert_function(builder.module, hint, "llvm.prefetch.p0")
            # For reading, to stay in the nearest cache, data.
            builder.call(function, [builder.bitcast(at, cgutils.voidptr_t), number(0), number(3), number(1)])
            return context.get_dummy_value()

        return types.void(array, place), generate
