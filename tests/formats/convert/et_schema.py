"""The published schema of Chakra graphs (`et_def.proto`), for the `protobuf` package."""

from __future__ import annotations

from google.protobuf import descriptor_pb2, descriptor_pool, json_format, message_factory
from google.protobuf.internal.decoder import _DecodeVarint32
from google.protobuf.internal.encoder import _VarintBytes

_FIELD = descriptor_pb2.FieldDescriptorProto
_SCALARS = (
    "double float int32 int64 uint32 uint64 sint32 sint64 "
    "fixed32 fixed64 sfixed32 sfixed64 bool string bytes"
)


def _field(message, name, number, kind, *, repeated=False, type_name=None, oneof=None):
    field = message.field.add(name=name, number=number)
    field.type = getattr(_FIELD, f"TYPE_{kind.upper()}")
    field.label = _FIELD.LABEL_REPEATED if repeated else _FIELD.LABEL_OPTIONAL
    if type_name:
        field.type_name = f".ChakraProtoMsg.{type_name}"
    if oneof is not None:
        field.oneof_index = oneof


def _schema():
    file = descriptor_pb2.FileDescriptorProto(
        name="et_def.proto", package="ChakraProtoMsg", syntax="proto3"
    )
    attribute = file.message_type.add(name="AttributeProto")
    attribute.oneof_decl.add(name="value")
    _field(attribute, "name", 1, "string")
    _field(attribute, "doc_string", 2, "string")
    for place, scalar in enumerate(_SCALARS.split()):
        listed = f"{scalar.capitalize()}List"
        values = file.message_type.add(name=listed)
        _field(values, "values", 1, scalar, repeated=True)
        _field(attribute, f"{scalar}_val", 3 + 2 * place, scalar, oneof=0)
        _field(attribute, f"{scalar}_list", 4 + 2 * place, "message", type_name=listed, oneof=0)
    types = file.enum_type.add(name="NodeType")
    names = "INVALID METADATA MEM_LOAD MEM_STORE COMP COMM_SEND COMM_RECV COMM_COLL"
    for number, name in enumerate(names.split()):
        types.value.add(name=f"{name}_NODE", number=number)
    lists = file.message_type.add(name="IOInfo")
    for number, name in enumerate(("values", "shapes", "types"), 1):
        _field(lists, name, number, "string")
    metadata = file.message_type.add(name="GlobalMetadata")
    _field(metadata, "version", 1, "string")
    _field(metadata, "attr", 2, "message", repeated=True, type_name="AttributeProto")
    node = file.message_type.add(name="Node")
    _field(node, "id", 1, "uint64")
    _field(node, "name", 2, "string")
    _field(node, "type", 3, "enum", type_name="NodeType")
    _field(node, "ctrl_deps", 4, "uint64", repeated=True)
    _field(node, "data_deps", 5, "uint64", repeated=True)
    _field(node, "start_time_micros", 6, "uint64")
    _field(node, "duration_micros", 7, "uint64")
    _field(node, "inputs", 8, "message", type_name="IOInfo")
    _field(node, "outputs", 9, "message", type_name="IOInfo")
    _field(node, "attr", 10, "message", repeated=True, type_name="AttributeProto")
    return file


_POOL = descriptor_pool.DescriptorPool()
_POOL.Add(_schema())
GlobalMetadata = message_factory.GetMessageClass(
    _POOL.FindMessageTypeByName("ChakraProtoMsg.GlobalMetadata")
)
Node = message_factory.GetMessageClass(_POOL.FindMessageTypeByName("ChakraProtoMsg.Node"))


def decode(data):
    """Return the metadata and the nodes of a file, and see that nothing is unknown in it."""
    messages = []
    place = 0
    while place < len(data):
        length, place = _DecodeVarint32(data, place)
        message = (Node if messages else GlobalMetadata)()
        message.ParseFromString(data[place : place + length])
        assert message.SerializeToString(deterministic=True) == data[place : place + length]
        messages.append(message)
        place += length
    return messages[0], messages[1:]


def encode(messages):
    return b"".join(
        _VarintBytes(len(data)) + data for data in (m.SerializeToString() for m in messages)
    )


def of_json(objects):
    """Return the file that a list of objects was printed from."""
    metadata, *nodes = objects
    parsed = [json_format.ParseDict(metadata, GlobalMetadata())]
    return encode([*parsed, *(json_format.ParseDict(node, Node()) for node in nodes)])


def values(node):
    """Return the attributes of a node."""
    return {one.name: getattr(one, one.WhichOneof("value")) for one in node.attr}
