/* Who is heard of a turn while it streams: the asking agent, the asked ones, and nothing of those that have data. */
#include <stdlib.h>
#include <string.h>

#include "coreengine/app/app.h"
#include "tests/kit/kit.h"
#include "tests/unit/cli/suites.h"

static const struct rv_origin one = {.agent = "one", .depth = 1}, two = {.agent = "two", .depth = 1},
                              deep = {.agent = "deep", .depth = 2, .parent = &one};

static const struct rv_origin *who(const char *word)
{
    return strcmp(word, "one") == 0 ? &one : strcmp(word, "two") == 0 ? &two : strcmp(word, "deep") == 0 ? &deep : NULL;
}

static void write_shown(const struct rv_origin *speaker, const struct rv_chat_shown *shown, rv_buf *out)
{
    if (!shown->is_shown)
        return;
    if (shown->begins_part)
        rv_buf_puts(out, "|");
    if (shown->new_speaker)
        rv_buf_printf(out, "%s>", speaker ? speaker->agent : "me");
    rv_buf_add_str(out, shown->gap);
    rv_buf_add_str(out, shown->text);
}

/* Steps: {what, whose, call, text}; what is 'p'iece, 'd'ata agent asks, 'r'eplied, 'b'roken reply, 'e'nded, 'f'ailed,
 * 'n'ew run. */
struct step {
    char what;
    const char *whose;
    int64_t call;
    const char *text;
};

static void write_held(struct rv_chat_sink *s, rv_buf *out)
{
    const struct rv_origin *speaker;
    struct rv_chat_shown shown;

    while (rv_chat_sink_next(s, &speaker, &shown))
        write_shown(speaker, &shown, out);
}

static void play(struct rv_chat_sink *s, const struct step *step, rv_buf *out)
{
    const struct rv_origin *speaker = who(step->whose ? step->whose : "me");
    struct rv_chat_shown shown;

    switch (step->what) {
    case 'p':
        shown = rv_chat_sink_on_piece(s, speaker, step->call, rv_str_of(step->text));
        write_shown(speaker, &shown, out);
        break;
    case 'd':
        rv_chat_sink_on_ask(s, &(struct rv_chat_speaker){.who = speaker, .is_structured = true});
        break;
    case 'r':
    case 'b':
        rv_chat_sink_on_reply(s, speaker, step->what == 'b');
        break;
    case 'e':
    case 'f':
        rv_chat_sink_on_done(s, speaker, step->what == 'f');
        break;
    default:
        rv_chat_sink_on_run(s);
    }
    write_held(s, out);
}

#define PIECE(whose, call, text)                                                                                       \
    {                                                                                                                  \
        'p', whose, call, text                                                                                         \
    }
#define SAYS(whose, call, text)                                                                                        \
    {'p', whose, call, text},                                                                                          \
    {                                                                                                                  \
        'r', whose, 0, NULL                                                                                            \
    }
#define ENDS(whose)                                                                                                    \
    {                                                                                                                  \
        'e', whose, 0, NULL                                                                                            \
    }
#define FAILS(whose)                                                                                                   \
    {                                                                                                                  \
        'f', whose, 0, NULL                                                                                            \
    }
static const struct {
    const char *what;
    struct step steps[12];
    const char *want;
} cases[] = {
    {"pieces of a reply are one part",
     {PIECE("me", 1, "Hel"), PIECE("me", 1, "lo "), PIECE("me", 1, "you")},
     "me>Hello you"},
    {"replies are parts", {SAYS("me", 1, "Let me see."), SAYS("me", 2, "There.")}, "me>Let me see.|There."},
    {"white space at borders is not shown, else it is",
     {PIECE("me", 1, "\n\n a"), PIECE("me", 1, " \n"), PIECE("me", 1, "\n b \n"), PIECE("me", 2, "  "),
      PIECE("me", 2, "\nc")},
     "me>a \n\n b|c"},
    {"the asking agent is not heard after the asked one",
     {SAYS("me", 1, "I ask."), SAYS("one", 2, "Answer"), ENDS("one"), SAYS("me", 3, "It said: Answer")},
     "me>I ask.|one>Answer"},
    {"what is asked after that is heard",
     {SAYS("one", 2, "A"), ENDS("one"), SAYS("me", 3, "no"), SAYS("two", 4, "B"), ENDS("two"), SAYS("me", 5, "no")},
     "one>A|two>B"},
    {"a failed agent gives the word back",
     {SAYS("one", 2, "half an ans"), FAILS("one"), SAYS("me", 3, "It failed.")},
     "one>half an ans|me>It failed."},
    {"also one that failed after another had spoken",
     {SAYS("one", 1, "A"), ENDS("one"), SAYS("two", 2, "B"), FAILS("two"), SAYS("me", 3, "C")},
     "one>A|two>B|me>C"},
    {"a silent agent takes no word away",
     {PIECE("one", 2, " \n"), {'r', "one", 0, NULL}, ENDS("one"), SAYS("me", 3, "x")},
     "me>x"},
    {"words of a reply that broke take no word away",
     {PIECE("one", 2, "hal"), {'b', "one", 0, NULL}, ENDS("one"), SAYS("me", 3, "x")},
     "one>hal|me>x"},
    {"data is not shown and takes no word away",
     {{'d', "one", 0, NULL}, SAYS("one", 2, "{\"a\":1}"), ENDS("one"), SAYS("me", 3, "x")},
     "me>x"},
    {"nor is what is said below data",
     {{'d', "one", 0, NULL},
      SAYS("deep", 2, "hm"),
      ENDS("deep"),
      SAYS("one", 3, "{}"),
      ENDS("one"),
      SAYS("me", 4, "x")},
     "me>x"},
    {"an agent of an agent takes both words",
     {SAYS("one", 1, "wait"), SAYS("deep", 2, "deep words"), ENDS("deep"), SAYS("one", 3, "no"), ENDS("one"),
      SAYS("me", 4, "no")},
     "one>wait|deep>deep words"},
    {"of agents side by side one has the floor, and the other waits",
     {PIECE("one", 1, "a "),
      PIECE("two", 2, "b "),
      PIECE("one", 1, "aa"),
      PIECE("two", 2, "bb"),
      {'r', "one", 0, NULL},
      PIECE("two", 2, " more")},
     "one>a aa|two>b bb more"},
    {"the floor goes round by replies",
     {PIECE("one", 1, "a"), SAYS("two", 2, "b"), {'r', "one", 0, NULL}, PIECE("one", 3, "aa"), SAYS("two", 4, "bb")},
     "one>a|two>b|one>aa|two>bb"},
    {"an agent that ends in the middle of a reply gives the floor back",
     {PIECE("one", 1, "a"), PIECE("two", 2, "b"), FAILS("one")},
     "one>a|two>b"},
    {"with what is below it", {PIECE("deep", 1, "a"), PIECE("two", 2, "b"), FAILS("one")}, "deep>a|two>b"},
    {"an own structured answer is no words", {{'d', "me", 0, NULL}, PIECE("me", 1, "{\"x\": 2}")}, ""},
    {"in another run of the turn all are heard again",
     {SAYS("one", 1, "a"), ENDS("one"), {'n', NULL, 0, NULL}, SAYS("me", 1, "b")},
     "one>a|me>b"},
};

/* The same, with another child_text of all agents. */
static const struct {
    const char *what;
    struct step steps[12];
    const char *want;
    int child_text;
    bool resets;
} chosen[] = {
    {"a conclusion is shown",
     {SAYS("me", 1, "I ask."), SAYS("one", 2, "A"), ENDS("one"), SAYS("two", 3, "B"), ENDS("two"),
      SAYS("me", 4, "Both agree.")},
     "me>I ask.|one>A|two>B|me>Both agree.",
     RV_CHILD_TEXT_FINAL,
     false},
    {"a repetition is not shown again",
     {SAYS("one", 1, "It is so."),
      ENDS("one"),
      PIECE("me", 2, " It is"),
      PIECE("me", 2, " so"),
      PIECE("me", 2, ".\n"),
      {'r', "me", 0, NULL}},
     "one>It is so.",
     RV_CHILD_TEXT_FINAL,
     false},
    {"nor is one before a conclusion",
     {SAYS("one", 1, "A"), ENDS("one"), SAYS("two", 2, "Bee"), ENDS("two"), PIECE("me", 3, "A\n\nB"),
      PIECE("me", 3, "ee\n\nSo"), PIECE("me", 3, " be it.")},
     "one>A|two>Bee|me>So be it.",
     RV_CHILD_TEXT_FINAL,
     false},
    {"what only begins as the asked agent did is shown",
     {SAYS("one", 1, "Yes"), ENDS("one"), PIECE("me", 2, "Ye"), PIECE("me", 2, "s"), PIECE("me", 2, "terday")},
     "one>Yes|me>Yesterday",
     RV_CHILD_TEXT_FINAL,
     false},
    {"also where it ends there",
     {SAYS("one", 1, "Yes"), ENDS("one"), SAYS("me", 2, "Ye")},
     "one>Yes|me>Ye",
     RV_CHILD_TEXT_FINAL,
     false},
    {"one agent may say what another one said",
     {SAYS("one", 1, "A"), ENDS("one"), SAYS("two", 2, "A"), ENDS("two")},
     "one>A|two>A",
     RV_CHILD_TEXT_FINAL,
     false},
    {"the words of an agent below count as said",
     {SAYS("deep", 1, "A"), ENDS("deep"), SAYS("one", 2, "A"), ENDS("one"), SAYS("me", 3, "A")},
     "deep>A",
     RV_CHILD_TEXT_FINAL,
     false},
    {"only the asking agent is shown",
     {SAYS("me", 1, "I ask."), SAYS("deep", 2, "x"), ENDS("deep"), SAYS("one", 3, "A"), ENDS("one"),
      SAYS("me", 4, "A")},
     "me>I ask.|A",
     RV_CHILD_TEXT_PARENT,
     false},
    {"both are shown", {SAYS("one", 1, "A"), ENDS("one"), SAYS("me", 2, "A")}, "one>A|me>A", RV_CHILD_TEXT_BOTH, false},
    {"the asking agent is shown again",
     {SAYS("one", 1, "A"), ENDS("one"), SAYS("me", 2, "A")},
     "one>A|me>A",
     RV_CHILD_TEXT_CHILD,
     true},
};

static void check(const char *what, const struct step *steps, size_t n, const struct rv_chat_speaker *as,
                  const char *want)
{
    const struct rv_origin *const all[] = {NULL, &one, &two, &deep};
    struct rv_chat_sink s;
    rv_buf out = RV_BUF_INIT(4096);

    rv_chat_sink_init(&s);
    rv_chat_sink_on_turn(&s);
    for (size_t i = 0; i < RV_COUNT(all); i++) {
        struct rv_chat_speaker speaker = *as;
        speaker.who = all[i];
        rv_chat_sink_on_ask(&s, &speaker);
    }
    for (size_t i = 0; i < n && steps[i].what; i++)
        play(&s, &steps[i], &out);
    rv_chat_sink_on_end(&s);
    write_held(&s, &out);
    ck_assert_msg(strcmp(rv_buf_cstr(&out), want) == 0, "%s: \"%s\"", what, rv_buf_cstr(&out));
    rv_buf_fini(&out);
    rv_chat_sink_fini(&s);
}

/* Proves remlight.19/26: Replies are kept apart by a blank line */
START_TEST(words_are_shown_as_they_are_kept)
{
    const struct rv_chat_speaker as = {.child_text = RV_CHILD_TEXT_CHILD};

    check(cases[_i].what, cases[_i].steps, RV_COUNT(cases[_i].steps), &as, cases[_i].want);
}
END_TEST

START_TEST(child_text_says_whose_words_are_shown)
{
    const struct rv_chat_speaker as = {.child_text = chosen[_i].child_text, .resets = chosen[_i].resets};

    check(chosen[_i].what, chosen[_i].steps, RV_COUNT(chosen[_i].steps), &as, chosen[_i].want);
}
END_TEST

START_TEST(a_new_turn_begins_with_nothing_before_it)
{
    struct rv_chat_sink s;
    rv_buf out = RV_BUF_INIT(4096);
    const struct step steps[] = {SAYS("one", 1, "a"), ENDS("one")}, next = PIECE("me", 1, "b");

    rv_chat_sink_init(&s);
    rv_chat_sink_on_turn(&s);
    for (size_t i = 0; i < RV_COUNT(steps); i++)
        play(&s, &steps[i], &out);
    rv_chat_sink_on_turn(&s);
    play(&s, &next, &out);
    ck_assert_str_eq(rv_buf_cstr(&out), "one>ame>b");
    rv_buf_fini(&out);
    rv_chat_sink_fini(&s);
}
END_TEST

/* --- against the rule of the core, on turns made by chance --- */

struct turn {
    struct rv_chat_sink sink;
    struct rv_rand rand;
    struct rv_origin origins[64];
    size_t n_origins;
    int64_t calls;
    rv_buf shown;
};

static unsigned dice(struct turn *t, unsigned n)
{
    unsigned char byte;
    t->rand.fill(t->rand.self, &byte, 1);
    return byte % n;
}

static void keep(rv_buf *said, rv_str text)
{
    if (said->len > 0)
        rv_buf_puts(said, "|");
    rv_buf_add_str(said, text);
}

static void reply(struct turn *t, const struct rv_origin *speaker, bool muted, rv_buf *said)
{
    static const char *const words[] = {"a", " b", "c ", " \n", "d\n\n", "", "\te"};
    rv_buf whole = RV_BUF_INIT(4096);

    t->calls++;
    for (unsigned n = dice(t, 5); n > 0; n--) {
        const char *word = words[dice(t, RV_COUNT(words))];
        struct rv_chat_shown shown = rv_chat_sink_on_piece(&t->sink, speaker, t->calls, rv_str_of(word));
        rv_buf_puts(&whole, word);
        if (shown.begins_part && shown.is_shown)
            rv_buf_puts(&t->shown, "|");
        if (shown.is_shown) {
            rv_buf_add_str(&t->shown, shown.gap);
            rv_buf_add_str(&t->shown, shown.text);
        }
    }
    rv_chat_sink_on_reply(&t->sink, speaker, false);
    if (!muted && rv_str_trim(rv_buf_str(&whole)).len > 0)
        keep(said, rv_str_trim(rv_buf_str(&whole)));
    rv_buf_fini(&whole);
}

/* One visit: replies, and agents that are asked between them. */
static void visit(struct turn *t, const struct rv_origin *self, int depth, bool structured, rv_buf *said)
{
    bool muted = false;

    rv_chat_sink_on_ask(&t->sink, &(struct rv_chat_speaker){.who = self, .is_structured = structured});
    for (unsigned n = 1 + dice(t, 3); n > 0; n--) {
        reply(t, self, muted, said);
        if (depth == 3 || t->n_origins == RV_COUNT(t->origins) || dice(t, 2))
            continue;
        struct rv_origin *asked = &t->origins[t->n_origins++];
        rv_buf words = RV_BUF_INIT(1 << 16);
        bool failed = dice(t, 4) == 0, data = dice(t, 4) == 0;
        *asked = (struct rv_origin){.agent = "asked", .depth = depth + 1, .parent = self};
        visit(t, asked, depth + 1, data, &words);
        rv_chat_sink_on_done(&t->sink, asked, failed);
        if (!data && words.len > 0) {
            keep(said, rv_buf_str(&words));
            muted = !failed;
        }
        rv_buf_fini(&words);
    }
}

/* Proves p8.W24: Words of asked agents are shown and kept once, as `child_text` says
 * Proves remlight.10: Who is heard: the asked agent, unless it failed, said nothing or answered with an object
 * Proves p8.W7 */
START_TEST(what_is_shown_is_what_is_kept)
{
    for (uint64_t seed = 0; seed < 3000; seed++) {
        struct rv_rand_state state;
        struct turn t = {.rand = rv_rand_seeded(&state, seed), .shown = RV_BUF_INIT(1 << 16)};
        rv_buf said = RV_BUF_INIT(1 << 16);

        rv_chat_sink_init(&t.sink);
        rv_chat_sink_on_turn(&t.sink);
        visit(&t, NULL, 0, false, &said);
        ck_assert_msg(strcmp(rv_buf_cstr(&t.shown), rv_buf_cstr(&said)) == 0, "turn %d: \"%s\" instead of \"%s\"",
                      (int)seed, rv_buf_cstr(&t.shown), rv_buf_cstr(&said));
        rv_buf_fini(&said);
        rv_buf_fini(&t.shown);
        rv_chat_sink_fini(&t.sink);
    }
}
END_TEST

/* --- agents that speak at once --- */

#define SPEAKERS 5

struct speaker {
    struct rv_origin origin;
    int64_t call;       /* of its reply; 0: it is silent */
    rv_buf said, shown; /* "part|part|" */
    rv_buf reply;
};

static void end_reply(struct rv_chat_sink *s, struct speaker *sp)
{
    rv_str words = rv_str_trim(rv_buf_str(&sp->reply));

    rv_chat_sink_on_reply(s, &sp->origin, false);
    if (words.len > 0) {
        rv_buf_add_str(&sp->said, words);
        rv_buf_putc(&sp->said, '|');
    }
    rv_buf_clear(&sp->reply);
    sp->call = 0;
}

static struct speaker *speaker_of(struct speaker *all, const struct rv_origin *origin)
{
    size_t i = 0;

    while (&all[i].origin != origin)
        i++;
    return &all[i];
}

/* A part that is not the last one shown and goes on would be seen as another part. */
static void see(struct speaker *all, const struct rv_origin *origin, const struct rv_chat_shown *shown, int *n_parts)
{
    struct speaker *sp = shown->is_shown ? speaker_of(all, origin) : NULL;

    if (!sp)
        return;
    if (shown->begins_part || *n_parts == 0) {
        rv_buf_puts(&sp->shown, sp->shown.len ? "|" : "");
        ++*n_parts;
    }
    rv_buf_add_str(&sp->shown, shown->gap);
    rv_buf_add_str(&sp->shown, shown->text);
}

static void see_held(struct speaker *all, struct rv_chat_sink *s, int *n_parts)
{
    const struct rv_origin *origin;
    struct rv_chat_shown shown;

    while (rv_chat_sink_next(s, &origin, &shown))
        see(all, origin, &shown, n_parts);
}

static void speak_at_once(struct turn *t, struct speaker *all)
{
    static const char *const words[] = {"a", " b", "c ", " \n", "d\n\n", "\te"};
    int n_parts = 0;

    for (int step = 0; step < 200; step++) {
        struct speaker *sp = &all[dice(t, SPEAKERS)];
        if (sp->call && dice(t, 8) == 0) {
            end_reply(&t->sink, sp);
            see_held(all, &t->sink, &n_parts);
            continue;
        }
        const char *word = words[dice(t, RV_COUNT(words))];
        sp->call = sp->call ? sp->call : ++t->calls;
        rv_buf_puts(&sp->reply, word);
        struct rv_chat_shown shown = rv_chat_sink_on_piece(&t->sink, &sp->origin, sp->call, rv_str_of(word));
        see(all, &sp->origin, &shown, &n_parts);
    }
    for (size_t i = 0; i < SPEAKERS; i++)
        end_reply(&t->sink, &all[i]);
    rv_chat_sink_on_end(&t->sink);
    see_held(all, &t->sink, &n_parts);
}

START_TEST(agents_that_speak_at_once_are_heard_one_after_the_other)
{
    for (uint64_t seed = 0; seed < 500; seed++) {
        struct rv_rand_state state;
        struct turn t = {.rand = rv_rand_seeded(&state, seed)};
        struct speaker all[SPEAKERS];

        for (size_t i = 0; i < SPEAKERS; i++)
            all[i] = (struct speaker){.origin = {.agent = "one", .depth = 1},
                                      .said = RV_BUF_INIT(1 << 16),
                                      .shown = RV_BUF_INIT(1 << 16),
                                      .reply = RV_BUF_INIT(1 << 16)};
        rv_chat_sink_init(&t.sink);
        rv_chat_sink_on_turn(&t.sink);
        speak_at_once(&t, all);
        for (size_t i = 0; i < SPEAKERS; i++) {
            rv_buf_puts(&all[i].shown, all[i].shown.len ? "|" : "");
            ck_assert_msg(rv_str_eq(rv_buf_str(&all[i].shown), rv_buf_str(&all[i].said)),
                          "turn %d: \"%s\" instead of \"%s\"", (int)seed, rv_buf_cstr(&all[i].shown),
                          rv_buf_cstr(&all[i].said));
            rv_buf_fini(&all[i].said);
            rv_buf_fini(&all[i].shown);
            rv_buf_fini(&all[i].reply);
        }
        rv_chat_sink_fini(&t.sink);
    }
}
END_TEST

Suite *chat_sink_suite(void)
{
    Suite *s = suite_create("chat_sink");
    TCase *tc = tcase_create("chat_sink");

    tcase_add_loop_test(tc, words_are_shown_as_they_are_kept, 0, RV_COUNT(cases));
    tcase_add_loop_test(tc, child_text_says_whose_words_are_shown, 0, RV_COUNT(chosen));
    tcase_add_test(tc, a_new_turn_begins_with_nothing_before_it);
    tcase_add_test(tc, what_is_shown_is_what_is_kept);
    tcase_add_test(tc, agents_that_speak_at_once_are_heard_one_after_the_other);
    suite_add_tcase(s, tc);
    return s;
}
