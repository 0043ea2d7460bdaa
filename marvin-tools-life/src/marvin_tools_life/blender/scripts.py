"""What Blender is asked to do, as Python for its own interpreter.

The add-on has no commands of its own for most of it, and captures what a script prints. A script reads its arguments
from JSON in a text, so that no text of a model becomes code.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

MARK = "marvin:"
"""How the line begins that has the outcome; add-ons of others may print, too."""

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
    for node in material.node_tree.nodes if material.node_tree else ():
        if node.type == "BSDF_PRINCIPLED":
            node.inputs["Base Color"].default_value = color
            if "Alpha" in node.inputs:
                node.inputs["Alpha"].default_value = color[3]
def described(one):
    return dict(name=one.name, type=one.type, location=numbers(one.location), rotation=numbers(one.rotation_euler),
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
    before = dict(described(one), exact=dict(location=list(one.location), scale=list(one.scale),
        rotation=list(one.rotation_euler)), mode=one.rotation_mode)
    if given["rotation"] is not None and one.rotation_mode in ("QUATERNION", "AXIS_ANGLE"):
        one.rotation_mode = "XYZ"
    for field, name in (("location", "location"), ("scale", "scale"), ("rotation", "rotation_euler")):
        if given[field] is not None:
            setattr(one, name, given[field])
    told(dict(before=before, after=described(one)))
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
if given["before"] is None:
    one.active_material = bpy.data.materials.get(given["old"])
    if material is not None and not material.users:
        bpy.data.materials.remove(material)
elif material is not None:
    paint(material, given["before"])
    one.active_material = bpy.data.materials.get(given["old"])
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
    was_there = material is not None
    before = list(material.diffuse_color) if was_there else None
    if not was_there:
        material = bpy.data.materials.new(name)
        material.use_nodes = True
    paint(material, given["color"])
    if one.data.materials:
        one.active_material = material
    else:
        one.data.materials.append(material)
    told(dict(object=one.name, material=material.name, old=old, before=before))
"""


def script(body: str, given: Mapping[str, Any]) -> str:
    """A script with its arguments."""
    return _HEAD.format(given=json.dumps(dict(given)), mark=MARK) + body
