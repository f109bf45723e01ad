/* Words of messages, from the lists in messages.h. */
#include "coreengine/messages/messages.h"
