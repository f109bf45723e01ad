/* The rules of providers on the order and the shape of messages, written down apart from the engine's own code. Each
 * check returns NULL, or the rule that is broken. */
#ifndef RV_TESTS_MESSAGES_RULES_H
#define RV_TESTS_MESSAGES_RULES_H

#include "coreengine/base/base.h"

/** `history` as coreengine/model/llm/llm.h describes it. */
const char *broken_rule_of_history(json_object *messages);
/** The body of a request to OpenAI, which ends with that prompt. */
const char *broken_rule_of_openai(json_object *body, const char *prompt);
/** The same of Anthropic. */
const char *broken_rule_of_anthropic(json_object *body, const char *prompt);

/* What the files of rules share. */
bool rule_blank(rv_str text);
bool rule_word(rv_str text, size_t max); /* letters, digits, "_" and "-"; not empty */
bool rule_object(rv_str json);           /* the text of one */
rv_str rule_text(json_object *obj, const char *key);
bool rule_is(json_object *obj, const char *key, const char *text);

/* Names that were met: a plain list, since the engine's index is under test, too. */
struct rule_names {
    rv_str names[4096];
    size_t n;
};
bool rule_add(struct rule_names *s, rv_str name); /* false: it is there, or there is no room */

#endif
