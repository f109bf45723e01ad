/* Shared by the files that read models and prices only. */
#ifndef RV_CONFIG_MODELS_INTERNAL_H
#define RV_CONFIG_MODELS_INTERNAL_H

#include "config/config_internal.h"

/* A price as written, in US dollars. */
struct raw_price {
    double input, output, cached, cache_write;
    bool has_cached, has_cache_write;
};
struct rv_price config_price_of(const struct raw_price *raw);

/* --- Prices: the table that is built in, and the user's own --- */
struct rv_price_row {
    const char *name; /* provider:model, or with a * at its end; static, or borrowed from the user's table */
    struct rv_price price;
    int64_t window; /* tokens of input; 0: not known */
};
extern const struct rv_price_row config_price_rows[]; /* of prices.json; made when reeve is built */
extern const size_t config_n_price_rows;
/** "provider:model" at the first colon; views of name. */
void config_split_model(const char *name, rv_str *provider, const char **model);
/** What the tables know of a model, into has_price, price and max_input_tokens of *out. The user's table is read on the
 * way, once in a load; what is wrong with it are findings. */
void config_prices_find(struct rv_loader *l, const char *provider, const char *model, struct rv_chosen_model *out);
/** The same in the table that is built in alone: no file is read. */
void config_prices_find_built_in(struct rv_loader *l, const char *provider, const char *model,
                                 struct rv_chosen_model *out);
void config_prices_free(struct rv_prices *prices);

/* A mapping as written. Strings that may hold indirections are taken from the nodes instead. Texts live in the arena of
 * the pipeline. */
struct raw_model {
    struct rv_model_config model;
    const char *provider, *name;
    struct raw_price price;
    const char *options;
    struct { /* goes to the provider as it is written: checked here, and left */
        const char *text;
        int64_t number;
        bool flag;
    } sent;
};
/** Is that one of the keys whose values go to the provider? */
bool config_model_key_is_sent(rv_str name);
/** Is its provider an entry of a capability? Such names have a point. */
bool config_is_of_capability(const struct rv_model_config *model);

#endif
