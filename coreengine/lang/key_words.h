/* Keys of other tools, for readers that have no table of keys; struct rv_key_reader.words is for those that have one.
 */
#ifndef RV_KEY_WORDS_H
#define RV_KEY_WORDS_H

#include "coreengine/lang/yaml.h"

/** What to write in the place of the key; "_", "-" and capitals make no difference. NULL: nothing is known. */
const char *rv_key_word_says(const struct rv_key_word *words, rv_str key);

#endif
