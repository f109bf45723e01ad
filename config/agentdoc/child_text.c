/* Words of whose text is shown and kept when agents ask each other. */
#include "config/agentdoc/agentdoc.h"

#define RV_CHILD_TEXT_WORD(n, t, m) [RV_CHILD_TEXT_##n] = (t),
static const char *const words[] = {RV_CHILD_TEXTS(RV_CHILD_TEXT_WORD)};

const char *rv_child_text_text(enum rv_child_text how)
{
    return words[how];
}

int rv_child_text_of(rv_str word)
{
    for (int i = 0; i < RV_N_CHILD_TEXTS; i++)
        if (rv_str_is(word, words[i]))
            return i;
    return RV_UNSET;
}
