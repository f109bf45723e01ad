/* Words of whose text is heard when agents ask each other. */
#include "config/config.h"

#define RV_CHILD_TEXT_WORD(n, t, m) [RV_CHILD_TEXT_##n] = (t),
static const char *const words[] = {RV_CHILD_TEXTS(RV_CHILD_TEXT_WORD)};

const char *rv_child_text_text(enum rv_child_text how)
{
    return words[how];
}
