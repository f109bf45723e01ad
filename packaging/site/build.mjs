// build.mjs OUT [MARKED]: the documents as a site of static files, which needs no server. Pages keep their paths in the
// tree with .html for .md, so their links are those of the Markdown; what they link to outside of docs becomes a page
// too: Markdown as a page, any other file as its text, a folder as a list. A link that leads nowhere ends the build.
import fs from 'node:fs'
import path from 'node:path'
import {fileURLToPath, pathToFileURL} from 'node:url'

const here = path.dirname(fileURLToPath(import.meta.url))
const root = path.resolve(here, '../..')
const out = path.resolve(process.argv[2] ?? 'build/site')
const {marked, Renderer} = await import(pathToFileURL(process.argv[3] ?? '/usr/share/nodejs/marked/lib/marked.esm.js'))

const pages = new Map() // path in the tree -> {title, html, ids, links}
const texts = new Set() // other files that pages link to
const folders = new Set()
const pictures = new Set()
const problems = []

const escape = text => text.replace(/[&<>"]/g, c => ({'&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;'})[c])
const plain = html => html.replace(/<[^>]*>/g, ' ').replace(/&(amp|lt|gt|quot|#39);/g,
    (_, name) => ({amp: '&', lt: '<', gt: '>', quot: '"', '#39': "'"})[name]).replace(/\s+/g, ' ').trim()
// As tests/scripts/links has it, and as forges do.
const slug = title => title.toLowerCase().replace(/[^a-z0-9 _-]/g, '').replace(/ /g, '-')
const pageOf = file => file.endsWith('.md') ? file.slice(0, -3) + '.html' : file + '.html'
const inTree = file => !path.relative(root, path.join(root, file)).startsWith('..')

// What a link of `from` leads to, as a path in the tree; notes what has to be made for it.
function resolve(from, href) {
    const [target, fragment] = href.split('#')
    let file = target ? path.normalize(path.join(path.dirname(from), target)).replace(/\/$/, '') : from
    const at = path.join(root, file)
    if (!inTree(file) || !fs.existsSync(at)) {
        problems.push(`${from}: no file ${href}`)
        return href
    }
    if (fs.statSync(at).isDirectory()) {
        if (fs.existsSync(path.join(at, 'README.md')))
            file = path.join(file, 'README.md')
        else
            folders.add(file)
    }
    if (/\.(svg|png)$/.test(file)) {
        pictures.add(file)
        return path.relative(path.dirname(from), file)
    }
    if (file.endsWith('.md'))
        read(file)
    else if (!folders.has(file))
        texts.add(file)
    return path.relative(path.dirname(from), folders.has(file) ? path.join(file, 'index.html') : pageOf(file)) +
        (fragment ? '#' + fragment : '')
}

function read(file) {
    if (pages.has(file))
        return
    const page = {title: file, html: '', ids: new Set(), links: [], sections: []}
    pages.set(file, page)
    const renderer = new Renderer()
    const isOutside = href => /^[a-z]+:/.test(href)
    renderer.heading = (html, level, raw) => {
        const id = slug(plain(html))
        if (level === 1 && page.title === file)
            page.title = plain(html)
        page.ids.add(id)
        return `<h${level} id="${id}">${html} <a class="here" href="#${id}" aria-label="link to this section">#</a></h${level}>\n`
    }
    renderer.link = (href, title, html) => {
        if (!isOutside(href)) {
            href = resolve(file, href)
            page.links.push(href)
        }
        return `<a href="${escape(href)}">${html}</a>`
    }
    renderer.image = (href, title, text) =>
        `<img src="${escape(isOutside(href) ? href : resolve(file, href))}" alt="${escape(text)}">`
    renderer.code = (code, info) => `<pre><code>${escape(code)}</code></pre>\n`
    renderer.html = html => html.startsWith('<!--') ? '' : escape(html)
    page.html = marked.parse(fs.readFileSync(path.join(root, file), 'utf8'), {renderer, mangle: false, headerIds: false})
    page.html = page.html.replace(/<table>/g, '<div class="wide"><table>').replace(/<\/table>/g, '</table></div>')
    let section = {id: '', title: page.title, text: ''}
    for (const part of page.html.split(/(?=<h[1-6] id=")/)) {
        const head = part.match(/^<h[1-6] id="([^"]*)">(.*?) <a class="here"/)
        section = {id: head && head[1] !== slug(page.title) ? head[1] : '', title: head ? plain(head[2]) : page.title,
            text: plain(head ? part.slice(part.indexOf('</h')) : part)}
        page.sections.push(section)
    }
}

function frame(file, title, body, up) {
    const depth = '../'.repeat(file.split('/').length - 1)
    return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${escape(title)} - reeve</title>
<link rel="stylesheet" href="${depth}site.css">
<script src="${depth}index.js" defer></script>
<script src="${depth}search.js" defer data-root="${depth}"></script>
</head>
<body>
<header><a href="${depth}docs/README.html">reeve</a>
<input id="search" type="search" placeholder="Search" aria-label="Search the documents" autocomplete="off">
<button id="theme" type="button">light/dark</button></header>
<div id="found" aria-live="polite"></div>
<div id="sides"><nav aria-label="Documents">${navigation(file, depth)}</nav>
<main>
${body}
<p class="source">${escape(up)}</p>
</main></div>
</body>
</html>
`
}

// The sections of docs/README.md, each with its links.
const contents = []
function navigation(file, depth) {
    return contents.map(({title, links}) => {
        const isOpen = links.some(link => link.file === file)
        return `<details${isOpen ? ' open' : ''}><summary>${escape(title)}</summary><ul>` + links.map(link =>
            `<li><a href="${depth}${link.file}"${link.file === file ? ' aria-current="page"' : ''}>${escape(link.title)}</a></li>`)
            .join('') + '</ul></details>'
    }).join('\n')
}

function write(file, text) {
    fs.mkdirSync(path.dirname(path.join(out, file)), {recursive: true})
    fs.writeFileSync(path.join(out, file), text)
}

fs.rmSync(out, {recursive: true, force: true})
for (const name of fs.readdirSync(path.join(root, 'docs'), {recursive: true}).sort())
    if (name.endsWith('.md'))
        read(path.join('docs', name))
for (const file of ['README.md', 'CONTRIBUTING.md', 'CHANGELOG.md'])
    read(file)

// Pages that docs/README.md names, below its headings, each once and by its own title; then two folders as they are.
const listed = new Set()
function list(title, keys) {
    const links = []
    for (const key of keys)
        if (pages.has(key) && !listed.has(key)) {
            listed.add(key)
            links.push({file: pageOf(key), title: pages.get(key).title})
        }
    contents.push({title, links})
}
const own = ['docs/gallery/', 'docs/explanation/decisions/']
const keyOf = new Map([...pages.keys()].map(key => [pageOf(key), key]))
for (const part of pages.get('docs/README.md').html.split(/(?=<h2 )/).slice(1))
    list(plain(part.match(/^<h2 id="[^"]*">(.*?) <a/)[1]), [...part.matchAll(/<a href="([^"#]+)"/g)]
        .map(([, href]) => keyOf.get(path.normalize(path.join('docs', href)))).filter(key => key && !own.some(at => key.startsWith(at))))
list('Gallery', [...pages.keys()].filter(key => key.startsWith(own[0])).sort())
list('Decisions', [...pages.keys()].filter(key => key.startsWith(own[1])).sort())

const index = []
for (const [file, page] of pages) {
    write(pageOf(file), frame(pageOf(file), page.title, page.html, file))
    for (const s of page.sections)
        index.push({page: page.title, title: s.title, url: pageOf(file) + (s.id ? '#' + s.id : ''), text: s.text})
}
for (const file of texts) {
    const text = fs.readFileSync(path.join(root, file), 'utf8')
    write(pageOf(file), frame(pageOf(file), file, `<h1>${escape(file)}</h1>\n<pre><code>${escape(text)}</code></pre>`, file))
}
for (const folder of folders) {
    const names = fs.readdirSync(path.join(root, folder)).sort()
    const at = path.join(folder, 'index.html')
    write(at, frame(at, folder, `<h1>${escape(folder)}</h1>\n<ul>${names.map(n => `<li>${escape(n)}</li>`).join('')}</ul>`, folder))
}
for (const file of pictures) {
    fs.mkdirSync(path.dirname(path.join(out, file)), {recursive: true})
    fs.copyFileSync(path.join(root, file), path.join(out, file))
}
write('index.js', 'const documents = ' + JSON.stringify(index) + '\n')
write('index.html', '<!doctype html><meta charset="utf-8"><title>reeve</title>' +
    '<meta http-equiv="refresh" content="0; url=docs/README.html"><a href="docs/README.html">reeve</a>\n')
for (const file of ['site.css', 'search.js'])
    fs.copyFileSync(path.join(here, file), path.join(out, file))

for (const [file, page] of pages)
    for (const href of page.links) {
        const [target, fragment] = href.split('#')
        const to = target ? path.normalize(path.join(path.dirname(file), target)) : pageOf(file)
        const there = pages.get(keyOf.get(to))
        if (fragment && there && !there.ids.has(fragment))
            problems.push(`${file}: no heading ${href}`)
    }
if (problems.length) {
    console.error(problems.join('\n'))
    process.exit(1)
}
console.log(`${pages.size} pages, ${texts.size + folders.size} files that they link to, ${index.length} sections to search`)
