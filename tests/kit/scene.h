/* Scenes: runs written down as YAML in tests/scenes, with what each has to do. tests/scenes/README.md has the words. */
#ifndef RV_TESTS_KIT_SCENE_H
#define RV_TESTS_KIT_SCENE_H

#include <check.h>

#include "tests/kit/drive.h"

struct rv_scene {
    char *file, *name;
    json_object *shared, *own; /* keys of the file, and of the case, which count first */
};
struct rv_scenes {
    struct rv_scene *items;
    size_t n;
};
/** All scenes of tests/scenes/FOLDER, by file name. */
struct rv_scenes rv_scenes_read(const char *folder);
void rv_scenes_free(struct rv_scenes *scenes);
/** Run one with its expectations. heard (NULL: no one) is told of each part: a run is made again after each reload. */
void rv_scene_run(const struct rv_scene *s, void (*heard)(void *self, struct drive *d), void *self);
/** A Check test for each scene of the folder, with the scene's name. */
TCase *rv_scenes_case(const char *folder);

#endif
