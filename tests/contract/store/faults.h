/* The operations of schemas, entities, blobs, snapshots and what processes share that test_faults.c tries. */
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
int do_list_message_days(struct world *w);
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
int do_stats(struct world *w);
int do_check(struct world *w);
int do_put_blob(struct world *w);
int do_get_blob(struct world *w);
int do_put_snapshot(struct world *w);
int do_get_snapshot(struct world *w);
int do_list_left(struct world *w);
int do_list_expired(struct world *w);
int do_take_turn(struct world *w);
int do_leave_turn(struct world *w);

/* test_api_keys.c: a key "there" with a login, and one that has expired. */
void furnish_api_keys(struct world *w);
void picture_api_keys(struct world *w, rv_buf *out);
int do_add_api_key(struct world *w);
int do_get_api_key(struct world *w);
int do_list_api_keys(struct world *w);
int do_has_api_keys(struct world *w);
int do_revoke_api_key(struct world *w);
int do_note_api_key(struct world *w);
int do_add_login(struct world *w);
int do_find_login(struct world *w);
int do_drop_login(struct world *w);
int do_prune_api_keys(struct world *w);

#endif
