/* Any bytes as the answer to a request for embeddings: rows of finite numbers, as many as were asked for, or an error.
 * The first byte chooses the wire and how many. */
#include <math.h>
#include <stdlib.h>

#include "coreengine/model/wire/wire.h"
#include "tests/kit/fuzz.h"

RV_FUZZ_TARGET(embed)
{
    struct rv_wire_target t = {.provider = "p", .model = "m"};
    struct rv_embeddings e = {0};
    rv_err *err = NULL;
    size_t n;

    if (size == 0)
        return 0;
    t.wire = data[0] % 2 ? RV_WIRE_OLLAMA : RV_WIRE_OPENAI;
    n = data[0] / 2 % 8;
    if (rv_wire_embed_read(&t, (rv_str){(const char *)data + 1, size - 1}, n, &e, &err) == 0) {
        require(e.n == n && n > 0 && e.dims > 0 && e.usage.input_tokens >= 0);
        for (size_t i = 0; i < e.n * e.dims; i++)
            require(isfinite(e.values[i]));
    } else {
        require(err && e.values == NULL && rv_err_text(err)[0]);
    }
    rv_err_free(err);
    rv_embeddings_fini(&e);
    return 0;
}
