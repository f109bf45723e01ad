/* The codes of failures of links. */
#include "coreengine/mcp/link.h"

const char *rv_mcp_fault_code(enum rv_mcp_fault fault)
{
    static const char *const codes[] = {
#define X(name, code, meaning) [RV_MCP_FAULT_##name] = (code),
        RV_MCP_FAULTS(X)
#undef X
    };

    return codes[fault];
}
