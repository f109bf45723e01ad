/* Words that compare equal: lower case, light folding of English endings, a list of words that say nothing about a
 * subject, and a few groups of words that mean nearly the same in technical texts. */
#include "capabilities/files/files_internal.h"

#include <ctype.h>
#include <string.h>

/* Sorted, for the search below. */
static const char *const stop_words[] = {
    "a",     "about", "after",  "again",  "all",     "also",   "am",    "an",     "and",   "any",    "are",  "as",
    "at",    "be",    "been",   "before", "being",   "but",    "by",    "can",    "could", "did",    "do",   "does",
    "doing", "done",  "each",   "else",   "explain", "find",   "for",   "from",   "get",   "gets",   "give", "go",
    "goes",  "got",   "had",    "happen", "happens", "has",    "have",  "having", "he",    "her",    "here", "his",
    "how",   "i",     "if",     "in",     "into",    "is",     "it",    "its",    "just",  "know",   "let",  "like",
    "made",  "make",  "makes",  "many",   "may",     "me",     "mean",  "means",  "might", "more",   "most", "much",
    "must",  "my",    "need",   "needs",  "no",      "not",    "of",    "on",     "one",   "only",   "or",   "other",
    "our",   "out",   "please", "shall",  "she",     "should", "show",  "so",     "some",  "such",   "tell", "than",
    "that",  "the",   "their",  "them",   "then",    "there",  "these", "they",   "thing", "things", "this", "those",
    "to",    "too",   "up",     "us",     "use",     "used",   "uses",  "using",  "very",  "want",   "was",  "way",
    "we",    "were",  "what",   "when",   "where",   "which",  "while", "who",    "whom",  "whose",  "why",  "will",
    "with",  "work",  "works",  "would",  "you",     "your",
};

/* Folded forms; each word of a group stands for the others. */
static const char *const groups[][7] = {
    {"error", "fail", "failur", "fault", "exception"},
    {"limit", "bound", "budget", "maximum", "cap"},
    {"stop", "end", "terminat", "finish"},
    {"start", "begin", "run", "launch", "execut"},
    {"build", "compil", "mak"},
    {"install", "setup", "requir", "packag"},
    {"config", "configuration", "setting", "yaml", "option"},
    {"plugin", "capability", "extension", "modul"},
    {"tool", "function", "capability"},
    {"loop", "iteration", "repeat", "retry", "cycl"},
    {"rout", "rule", "target", "next"},
    {"question", "clarification", "ask"},
    {"approv", "confirmation", "confirm", "permission"},
    {"interrupt", "paus", "wait", "resum"},
    {"parallel", "concurrent", "thread"},
    {"test", "check", "verify"},
    {"fast", "performanc", "speed", "benchmark"},
    {"memory", "ownership", "allocation", "leak"},
    {"stag", "agent", "step"},
    {"model", "llm", "provider"},
    {"prompt", "templat"},
    {"docs", "documentation", "document", "manual"},
    {"creat", "add", "writ", "mak"},
    {"delet", "remov"},
    {"return", "reply", "answer", "result", "output"},
    {"print", "show", "display", "writ"},
    {"find", "found", "search", "look"},
};

static bool ends_with(const char *word, size_t len, const char *end)
{
    size_t n = strlen(end);

    return len > n && memcmp(word + len - n, end, n) == 0;
}

static bool has_vowel(const char *word, size_t len)
{
    for (size_t i = 0; i < len; i++)
        if (strchr("aeiouy", word[i]))
            return true;
    return false;
}

/* "limits" -> "limit", "policies" -> "policy", "routing", "routed", "route" -> "rout". Not a stemmer: what it misses
 * only makes a search a little narrower. */
static void fold(char *word)
{
    size_t len = strlen(word);

    for (size_t i = 0; i < len; i++)
        if ((unsigned char)word[i] >= 0x80) /* rules of English are for English letters */
            return;
    if (len > 4 && ends_with(word, len, "ies")) {
        len -= 2;
        word[len - 1] = 'y';
        word[len] = '\0';
    } else if (len > 4 && (ends_with(word, len, "sses") || ends_with(word, len, "xes") ||
                           ends_with(word, len, "ches") || ends_with(word, len, "shes"))) {
        word[len -= 2] = '\0';
    } else if (len > 3 && word[len - 1] == 's' && !strchr("sui", word[len - 2])) {
        word[--len] = '\0';
    }
    if (len > 5 && ends_with(word, len, "ing") && has_vowel(word, len - 3))
        word[len -= 3] = '\0';
    else if (len > 4 && (ends_with(word, len, "ly") || (ends_with(word, len, "ed") && has_vowel(word, len - 2))))
        word[len -= 2] = '\0';
    if (len > 3 && word[len - 1] == word[len - 2] && !strchr("aeioulsz", word[len - 1]))
        word[--len] = '\0'; /* "stopped", "running" */
    if (len > 3 && word[len - 1] == 'e')
        word[--len] = '\0';
}

static bool is_word_byte(char c)
{
    return isalnum((unsigned char)c) || (unsigned char)c >= 0x80;
}

bool next_word(const char *text, size_t len, size_t *at, char word[MAX_WORD], char written[MAX_WORD])
{
    size_t i = *at, n = 0;

    while (i < len && !is_word_byte(text[i]))
        i++;
    for (; i < len && is_word_byte(text[i]); i++)
        if (n < MAX_WORD - 1)
            written[n++] = (char)((unsigned char)text[i] < 0x80 ? tolower((unsigned char)text[i]) : text[i]);
    written[n] = '\0';
    *at = i;
    memcpy(word, written, n + 1);
    fold(word);
    return n > 0;
}

bool is_stop_word(const char *written)
{
    size_t low = 0, high = sizeof stop_words / sizeof stop_words[0];

    if (strlen(written) < 2)
        return true;
    while (low < high) {
        size_t mid = (low + high) / 2;
        int order = strcmp(written, stop_words[mid]);
        if (order == 0)
            return true;
        if (order < 0)
            high = mid;
        else
            low = mid + 1;
    }
    return false;
}

int words_find(const struct words *words, const char *word)
{
    for (size_t i = 0; i < words->n; i++)
        if (strcmp(words->item[i], word) == 0)
            return (int)i;
    return -1;
}

static void add_word(struct words *words, const char *folded, const char *written)
{
    if (words->n >= MAX_TERMS || words_find(words, folded) >= 0)
        return;
    snprintf(words->item[words->n], MAX_WORD, "%s", folded);
    snprintf(words->seen[words->n], MAX_WORD, "%s", written);
    words->n++;
}

void words_of(const char *text, size_t len, struct words *out)
{
    char word[MAX_WORD], written[MAX_WORD];
    size_t at = 0;

    out->n = 0;
    while (next_word(text, len, &at, word, written))
        if (!is_stop_word(written))
            add_word(out, word, written);
}

const char *const *synonyms_of(const char *word)
{
    for (size_t g = 0; g < sizeof groups / sizeof groups[0]; g++)
        for (const char *const *item = groups[g]; *item; item++)
            if (strcmp(*item, word) == 0)
                return groups[g];
    return NULL;
}
