// Scenarios of the judges that reeve as a client does not pass, each with the reason.
const ELICITATION = 'a server before 2026-07-28 that asks a person has its call withdrawn, and gets the answer when the call ' +
    'is made again: the judge counts the first one as a failure';
const DPOP = 'an extension: tokens are not bound to a key';

export const exceptions = {
    'conformance-0.1': {
        'elicitation-sep1034-client-defaults': ELICITATION,
        'auth/2025-03-26-oauth-metadata-backcompat': 'the metadata at the root names the issuer ROOT/oauth, which is ' +
            'not the one that was asked; 0.2 has corrected it, and passes',
    },
    'conformance-0.2': {
        'elicitation-sep1034-client-defaults': ELICITATION,
        'auth/dpop': DPOP,
        'auth/dpop-nonce': DPOP,
    },
};

// Scenarios whose verdict says how busy the machine is.
export const measured = {
    'conformance-0.1': ['sse-retry'], // a reconnect that comes late fails; 0.2 judges the same without
    'conformance-0.2': [],
};
