// Search over `documents` of index.js, and the choice between light and dark. Everything is local.

// Sections that have every word of the query: in the title of the page, of the section, or in the text, in this order.
function find(documents, query, max) {
    const words = query.toLowerCase().split(/[^\p{L}\p{N}_.$-]+/u).filter(Boolean)
    if (words.length === 0)
        return []
    const found = []
    for (const d of documents) {
        const page = d.page.toLowerCase(), title = d.title.toLowerCase(), text = d.text.toLowerCase()
        let score = 0
        for (const word of words) {
            const here = (page.includes(word) ? 8 : 0) + (title.includes(word) ? 4 : 0) +
                Math.min(text.split(word).length - 1, 3)
            if (here === 0) {
                score = 0
                break
            }
            score += here
        }
        if (score > 0)
            found.push({...d, score: score + (d.url.includes('#') ? 0 : 1)})
    }
    return found.sort((a, b) => b.score - a.score || (a.url < b.url ? -1 : 1)).slice(0, max)
}

// The text around the first word.
function excerpt(text, query) {
    const word = query.toLowerCase().split(/\s+/)[0]
    const at = Math.max(0, text.toLowerCase().indexOf(word) - 60)
    return (at > 0 ? '...' : '') + text.slice(at, at + 160)
}

if (typeof document !== 'undefined') {
    const root = document.currentScript.dataset.root
    const field = document.getElementById('search')
    const list = document.getElementById('found')
    const show = () => {
        list.replaceChildren()
        for (const d of find(documents, field.value, 20)) {
            const link = document.createElement('a')
            link.href = root + d.url
            const title = document.createElement('b')
            title.textContent = d.page === d.title ? d.page : d.page + ': ' + d.title
            const text = document.createElement('span')
            text.textContent = excerpt(d.text, field.value)
            link.append(title, text)
            list.append(link)
        }
        if (field.value.trim() && !list.firstChild)
            list.textContent = 'Nothing found.'
    }
    field.addEventListener('input', show)
    field.value = new URLSearchParams(location.search).get('q') ?? '' // README.html?q=journal
    show()
    field.addEventListener('keydown', event => {
        if (event.key === 'Escape') {
            field.value = ''
            show()
        } else if (event.key === 'Enter' && list.querySelector('a')) {
            list.querySelector('a').click()
        }
    })
    document.addEventListener('keydown', event => {
        if (event.key === '/' && document.activeElement !== field) {
            event.preventDefault()
            field.focus()
        }
    })

    // On a phone the list of documents stands above the page: there it begins closed.
    if (matchMedia('(max-width: 50rem)').matches)
        for (const part of document.querySelectorAll('nav details'))
            part.open = false

    const page = document.documentElement
    let kept = null
    try {
        kept = localStorage.getItem('theme')
    } catch { /* files of some browsers have no storage: the system's choice holds */ }
    if (kept === 'light' || kept === 'dark')
        page.dataset.theme = kept
    document.getElementById('theme').addEventListener('click', () => {
        const isDark = page.dataset.theme ? page.dataset.theme === 'dark' : matchMedia('(prefers-color-scheme: dark)').matches
        page.dataset.theme = isDark ? 'light' : 'dark'
        try {
            localStorage.setItem('theme', page.dataset.theme)
        } catch { /* for this page only */ }
    })
}
