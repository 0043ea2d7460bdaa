"""The Python scripts that are run in Blender.

The add-on has no commands of its own for most operations, and returns what a script prints. A script reads its
arguments from a JSON string, so that no text of a model becomes code.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

MARK = "marvin:"
"""The prefix of the line with the result; other add-ons may print as well."""

_HEAD = """
import bpy, json
given = json.loads({given!r})
def told(value):
    print({mark!r} + json.dumps(value, default=str))
def find(name):
    one = bpy.data.objects.get(name)
    return one if one is not None and one.users_collection else None
def numbers(values):
    return [round(float(value), 4) + 0.0 for value in values]
def missing(name):
    told(dict(missing=name, names=[one.name for one in bpy.data.objects if one.users_collection][:200]))
def paint(material, color):
    material.diffuse_color = color
    for node in shaders(material):
        node.inputs["Base Color"].default_value = color
        if "Alpha" in node.inputs:
            node.inputs["Alpha"].default_value = color[3]
def shaders(material):
    nodes = material.node_tree.nodes if material.node_tree else ()
    return [node for node in nodes if node.type == "BSDF_PRINCIPLED"]
def colors(material):
    return dict(diffuse=list(material.diffuse_color), shaders={{node.name: dict(
        color=list(node.inputs["Base Color"].default_value),
        alpha=node.inputs["Alpha"].default_value if "Alpha" in node.inputs else None) for node in shaders(material)}})
def paint_back(material, before):
    material.diffuse_color = before["diffuse"]
    for node in shaders(material):
        if node.name in before["shaders"]:
            old = before["shaders"][node.name]
            node.inputs["Base Color"].default_value = old["color"]
            if old["alpha"] is not None:
                node.inputs["Alpha"].default_value = old["alpha"]
def turned(one):
    if one.rotation_mode == "QUATERNION":
        return one.rotation_quaternion.to_euler()
    if one.rotation_mode == "AXIS_ANGLE":
        return one.matrix_basis.to_euler()
    return one.rotation_euler
def described(one):
    return dict(name=one.name, type=one.type, location=numbers(one.location), rotation=numbers(turned(one)),
                scale=numbers(one.scale))
"""

SCENE = """
scene = bpy.context.scene
objects = list(scene.objects)
told(dict(
    name=scene.name, total=len(objects), frame=scene.frame_current, frames=[scene.frame_start, scene.frame_end],
    engine=scene.render.engine, camera=scene.camera.name if scene.camera else None,
    objects=[dict(described(one), materials=[slot.material.name for slot in one.material_slots if slot.material])
             for one in objects[:given["most"]]],
    lights=[dict(name=one.name, kind=one.data.type, energy=one.data.energy)
            for one in objects if one.type == "LIGHT"][:100],
    materials=[one.name for one in bpy.data.materials][:100], all_materials=len(bpy.data.materials)))
"""

OBJECT = """
one = find(given["name"])
if one is None:
    missing(given["name"])
else:
    found = dict(described(one), visible=one.visible_get(), parent=one.parent.name if one.parent else None,
        dimensions=numbers(one.dimensions), collections=[each.name for each in one.users_collection],
        materials=[slot.material.name for slot in one.material_slots if slot.material],
        modifiers=[dict(name=each.name, kind=each.type) for each in one.modifiers],
        children=[each.name for each in one.children][:100])
    if one.type == "MESH":
        found["mesh"] = dict(vertices=len(one.data.vertices), edges=len(one.data.edges), faces=len(one.data.polygons))
    if one.type == "LIGHT":
        found["light"] = dict(kind=one.data.type, energy=one.data.energy, color=numbers(one.data.color))
    told(found)
"""

CREATE = """
add = dict(cube=bpy.ops.mesh.primitive_cube_add, sphere=bpy.ops.mesh.primitive_uv_sphere_add,
    uv_sphere=bpy.ops.mesh.primitive_uv_sphere_add, ico_sphere=bpy.ops.mesh.primitive_ico_sphere_add,
    cylinder=bpy.ops.mesh.primitive_cylinder_add, cone=bpy.ops.mesh.primitive_cone_add,
    torus=bpy.ops.mesh.primitive_torus_add, plane=bpy.ops.mesh.primitive_plane_add)
if bpy.context.mode != "OBJECT":
    bpy.ops.object.mode_set(mode="OBJECT")
add[given["type"]](location=given["location"], rotation=given["rotation"])
one = bpy.context.active_object
one.scale = given["scale"]
if given["name"]:
    one.name = given["name"]
bpy.ops.ed.undo_push(message="Marvin") if bpy.ops.ed.undo_push.poll() else None
told(described(one))
"""

MODIFY = """
one = find(given["name"])
if one is None:
    missing(given["name"])
else:
    before = dict(described(one), exact=dict(name=one.name, mode=one.rotation_mode, location=list(one.location),
        scale=list(one.scale), rotation_euler=list(one.rotation_euler),
        rotation_quaternion=list(one.rotation_quaternion), rotation_axis_angle=list(one.rotation_axis_angle)))
    if given["rotation"] is not None and one.rotation_mode in ("QUATERNION", "AXIS_ANGLE"):
        one.rotation_mode = "XYZ"
    for field, name in (("location", "location"), ("scale", "scale"), ("rotation", "rotation_euler")):
        if given[field] is not None:
            setattr(one, name, given[field])
    told(dict(before=before, after=described(one)))
"""

MOVE_BACK = """
one = find(given["name"])
if one is None:
    raise Exception("There is no object " + given["name"] + " any more.")
if given["rotation"]:
    # The mode first: to change it has Blender convert what is there.
    one.rotation_mode = given["mode"]
    for field in ("rotation_euler", "rotation_quaternion", "rotation_axis_angle"):
        setattr(one, field, given[field])
for field in ("location", "scale"):
    if field in given:
        setattr(one, field, given[field])
told(described(one))
"""

DELETE = """
one = find(given["name"])
if one is None:
    missing(given["name"])
else:
    if bpy.context.mode != "OBJECT" and bpy.context.active_object is one:
        bpy.ops.object.mode_set(mode="OBJECT")
    # It leaves all collections and stays with the file, so that it can come back with all that it has.
    one["marvin_place"] = json.dumps(dict(name=one.name, collections=[each.name for each in one.users_collection]))
    one.use_fake_user = True
    for each in list(one.users_collection):
        each.objects.unlink(one)
    one.name = one.name[:40] + " (deleted)"
    told(dict(kept=one.name))
"""

RESTORE = """
one = bpy.data.objects.get(given["kept"])
if one is None or "marvin_place" not in one:
    raise Exception("The deleted object is not kept in this file any more.")
place = json.loads(one["marvin_place"])
for name in place["collections"]:
    each = bpy.data.collections.get(name)
    if each is not None:
        each.objects.link(one)
if not one.users_collection:
    bpy.context.scene.collection.objects.link(one)
one.use_fake_user = False
one.name = place["name"]
del one["marvin_place"]
told(dict(name=one.name))
"""

UNPAINT = """
one = find(given["name"])
if one is None:
    raise Exception("There is no object " + given["name"] + " any more.")
material = bpy.data.materials.get(given["material"])
slots = [each.name if each else "" for each in one.data.materials]
if given["added"] and slots == [given["material"]]:
    one.data.materials.clear()
elif given["added"] and given["material"] in slots:
    one.data.materials.pop(index=slots.index(given["material"]))
elif not given["added"]:
    one.active_material = bpy.data.materials.get(given["old"])
if given["before"] is not None and material is not None:
    paint_back(material, given["before"])
elif material is not None and not material.users:
    bpy.data.materials.remove(material)
told(dict(name=one.name))
"""

MATERIAL = """
one = find(given["name"])
if one is None:
    missing(given["name"])
elif not hasattr(one.data, "materials"):
    told(dict(unfit=one.type))
else:
    old = one.active_material.name if one.active_material else ""
    name = given["material"] or one.name + " material"
    material = bpy.data.materials.get(name)
    before = colors(material) if material is not None else None
    if material is None:
        material = bpy.data.materials.new(name)
        material.use_nodes = True
    paint(material, given["color"])
    added = not one.data.materials
    if added:
        one.data.materials.append(material)
    else:
        one.active_material = material
    told(dict(object=one.name, material=material.name, old=old, before=before, added=added))
"""


def script(body: str, given: Mapping[str, Any]) -> str:
    """A script with its arguments."""
    return _HEAD.format(given=json.dumps(dict(given)), mark=MARK) + body
