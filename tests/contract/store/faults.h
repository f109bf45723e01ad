/* The operations of schemas and entities that test_faults.c tries. */
#ifndef RV_TESTS_STORE_FAULTS_H
#define RV_TESTS_STORE_FAULTS_H

#include "tests/contract/store/entities.h"

#define PAGE "a3c01f7e-6a5f-5a3c-9b5e-0d5a0f3b5a11"
int do_list_schema_versions(struct world *w);
int put_page(struct world *w, const char *json);
int do_put_entities(struct world *w);
int do_get_entity(struct world *w);
int do_load_entity(struct world *w);
int do_find_entities(struct world *w);
int do_delete_entity(struct world *w);
int do_delete_entities_named(struct world *w);
int do_merge_metadata(struct world *w);
int do_merge_edges(struct world *w);
int do_lookup(struct world *w);
int do_rebuild_keys(struct world *w);
int picture_entity(void *self, json_object *row, rv_err **err);
int do_find_schema(struct world *w);
int do_list_schemas(struct world *w);
int do_delete_schema(struct world *w);

#endif
