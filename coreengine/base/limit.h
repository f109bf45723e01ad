/* Limits in texts: a message that states a limit is made from its constant, so that they cannot differ. */
#ifndef RV_LIMIT_H
#define RV_LIMIT_H

/** "64" of a constant that is defined as 64: for a text that is one literal. */
#define RV_LIMIT_TEXT(limit)  RV_LIMIT_TEXT_(limit)
#define RV_LIMIT_TEXT_(limit) #limit

_Static_assert(sizeof RV_LIMIT_TEXT(__LINE__) < sizeof "__LINE__", "the value of a constant, not its name");

#endif
