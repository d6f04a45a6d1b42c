"""Shows tensors and graphs in gdb: `source docs/guides/braid_gdb.py`.

`print x` shows a braid::Tensor with its dtype, shape, device, memory and first elements; shapes,
devices and nodes of the graph are printed in one line too. `graph x` lists the graph of a tensor.
Only memory is read, no function of the program is called, so that this works at any stop.
"""
import struct

import gdb

MOST = 8  # elements that are printed
FORMATS = {"bool": "?", "uint8": "B", "int32": "i", "int64": "q", "float16": "e",
           "bfloat16": "H", "float32": "f", "float64": "d"}


def pointee(ref):
    """Returns the object of a braid::Ref, or None."""
    pointer = ref["p_"]
    if not int(pointer):
        return None
    # not dereference(): it warns of classes without debug information that derive from the type
    kind = pointer.type.strip_typedefs().target()
    return gdb.Value(bytes(gdb.selected_inferior().read_memory(int(pointer), kind.sizeof)), kind)


def shape(value):
    return [int(value["sizes_"][i]) for i in range(int(value["rank_"]))]


def enumerator(value):
    return str(value).rsplit("::", 1)[-1].rstrip("_")  # bool_


def device(value):
    return f"{enumerator(value['type_'])}:{int(value['index_'])}"


def element(code, data):
    (value,) = struct.unpack("<" + code, data)
    if code == "H":  # bfloat16: the upper half of a float
        (value,) = struct.unpack("<f", struct.pack("<I", value << 16))
    return f"{value:g}" if code in "efdH" else str(value)


def elements(impl, sizes):
    """Returns the elements as text, in brackets like those of the sizes."""
    code = FORMATS[enumerator(impl["dtype"])]
    width, strides = struct.calcsize("<" + code), shape(impl["strides"])
    first = int(pointee(impl["storage"])["data_"]) + int(impl["offset"]) * width
    memory, left = gdb.selected_inferior(), MOST

    def part(at, dim):
        nonlocal left
        if dim == len(sizes):
            left -= 1
            return element(code, bytes(memory.read_memory(at, width)))
        parts = []
        for i in range(sizes[dim]):
            if left == 0:
                parts.append("...")
                break
            parts.append(part(at + i * strides[dim] * width, dim + 1))
        return "[" + ", ".join(parts) + "]"

    try:
        return part(first, 0)
    except gdb.MemoryError:
        return "not in host memory"


def node_text(node):
    if node is None:
        return "none"
    return f"{node['name_'].string()} on {device(node['device_'])}"


def tensor_text(impl):
    if impl is None:
        return "undefined"
    sizes = shape(impl["shape"])
    text = f"{enumerator(impl['dtype'])} {sizes} on {device(impl['device'])}"
    if int(impl["numel"]):
        memory = int(pointee(impl["storage"])["data_"])
        text += f" at {memory:#x}: {elements(impl, sizes)}"
    node = pointee(impl["grad_fn"])
    return text + (f", by {node['name_'].string()}" if node is not None else "")


TEXTS = {
    "braid::Tensor": lambda value: tensor_text(pointee(value["impl_"])),
    "braid::Ref<braid::TensorImpl>": lambda value: tensor_text(pointee(value)),
    "braid::Ref<braid::autograd::Node>": lambda value: node_text(pointee(value)),
    "braid::Shape": lambda value: str(shape(value)),
    "braid::Device": device,
}


class Text:
    """A pretty-printer that shows a value as one text."""

    def __init__(self, value, text):
        self.value, self.text = value, text

    def to_string(self):
        return self.text(self.value)


def lookup(value):
    kind = value.type.strip_typedefs()
    if kind.code in (gdb.TYPE_CODE_REF, gdb.TYPE_CODE_RVALUE_REF):
        value = value.referenced_value()
        kind = value.type.strip_typedefs()
    text = TEXTS.get(kind.unqualified().name)
    if not text and kind.code == gdb.TYPE_CODE_STRUCT:  # a Parameter, a Buffer
        fields = kind.fields()
        if fields and fields[0].is_base_class and fields[0].type.name == "braid::Tensor":
            text = TEXTS["braid::Tensor"]
    return Text(value, text) if text else None


def edges(ref):
    """Returns the edges of a node: where the gradients of its op's inputs go to."""
    node = pointee(ref)
    count = int(node["edge_count_"])
    inside = node["inline_edges_"]["_M_elems"]
    if count <= inside.type.strip_typedefs().range()[1] + 1:
        return [inside[i] for i in range(count)]
    (place,) = (f.bitpos // 8 for f in node.type.fields() if f.name == "many_edges_")
    memory = gdb.selected_inferior()
    (first,) = struct.unpack("@P", memory.read_memory(int(ref["p_"]) + place, 8))
    edge = inside[0].type
    return [gdb.Value(bytes(memory.read_memory(first + i * edge.sizeof, edge.sizeof)), edge)
            for i in range(count)]


class Graph(gdb.Command):
    """graph TENSOR: the nodes that backward of the tensor runs, the deepest first."""

    def __init__(self):
        super().__init__("graph", gdb.COMMAND_DATA, gdb.COMPLETE_EXPRESSION)

    def invoke(self, argument, from_tty):
        value = gdb.parse_and_eval(argument)
        if value.type.code == gdb.TYPE_CODE_REF:
            value = value.referenced_value()
        impl = pointee(value["impl_"])
        if impl is None:
            raise gdb.GdbError("graph: expected a defined tensor, got an undefined one")
        todo, found = [impl["grad_fn"]], {}
        while todo:
            ref = todo.pop(0)
            at = int(ref["p_"])
            if at and at not in found:
                found[at] = ref
                todo += [edge["node"] for edge in edges(ref)]
        for ref in sorted(found.values(), key=lambda ref: -int(pointee(ref)["depth_"])):
            node = pointee(ref)
            print(f"depth {int(node['depth_'])}: {node_text(node)}, to {self.targets(ref)}")

    @staticmethod
    def targets(ref):
        texts = []
        for edge in edges(ref):
            below, leaf = pointee(edge["node"]), pointee(edge["leaf"])
            if below is not None:
                texts.append(f"{node_text(below)} (output {int(edge['output_nr'])})")
            else:
                texts.append(f"leaf {shape(leaf['shape'])}" if leaf is not None else "nothing")
        return ", ".join(texts)


gdb.pretty_printers.insert(0, lookup)
Graph()
