// A draft as a form: metadata, prompt, tools, fields of the answer. Each is a section that an agent can point at.
import {fill, h, icon, iconButton} from './dom.js'

const TYPES = ['string', 'number', 'integer', 'boolean', 'array', 'object']
const isMap = (v) => v !== null && typeof v === 'object' && !Array.isArray(v)
const toolName = (t) => (typeof t === 'string' ? t : String(t?.name ?? ''))

function field(id, label, input, hint) {
  input.id = id
  return h('div', {class: 'field'}, h('label', {for: id}, label), input, hint ? h('p', {class: 'muted small'}, hint) : null)
}

export class AgentForm {
  constructor(draft, tools) {
    this.draft = draft
    this.known = tools
    this.sections = {}
    this.el = h('div', {class: 'agent-form'}, this.section('metadata', 'About'), this.section('system_prompt', 'Prompt'), this.section('tools', 'Tools'), this.section('properties', 'Fields of the answer'))
    this.draw()
  }
  section(name, title) {
    const body = h('div', null)
    const note = h('p', {class: 'focus-note small', hidden: true})
    const el = h('section', {class: 'form-section', 'data-section': name, 'aria-label': title}, h('h2', null, title), note, body)
    this.sections[name] = {el, body, note}
    return el
  }
  draw() {
    this.metadata()
    this.prompt()
    this.tools()
    this.properties()
  }

  text(key, attrs = {}) {
    const el = h('input', {type: 'text', value: this.draft.doc[key] ?? '', ...attrs})
    el.addEventListener('input', () => {
      const {[key]: old, ...rest} = this.draft.doc
      if (el.value || attrs.required) this.draft.put(key, el.value)
      else this.draft.set(rest, 'form')
    })
    return el
  }
  metadata() {
    const {doc} = this.draft
    const tags = h('input', {type: 'text', value: (Array.isArray(doc.tags) ? doc.tags : []).join(', ')})
    tags.addEventListener('input', () => this.draft.put('tags', tags.value.split(',').map((t) => t.trim()).filter(Boolean)))
    const temperature = h('input', {type: 'number', min: '0', max: '2', step: '0.1', value: doc.temperature ?? ''})
    temperature.addEventListener('input', () => {
      const {temperature: old, ...rest} = this.draft.doc
      this.draft.set(temperature.value === '' ? rest : {...this.draft.doc, temperature: Number(temperature.value)}, 'form')
    })
    const structured = h('input', {type: 'checkbox', id: 'agent-structured', checked: doc.structured_output === true})
    structured.addEventListener('change', () => this.draft.put('structured_output', structured.checked))
    fill(
      this.sections.metadata.body,
      h(
        'div',
        {class: 'form-grid'},
        field('agent-name', 'Name', this.text('name', {required: true, spellcheck: 'false'})),
        field('agent-version', 'Version', this.text('version')),
        field('agent-model', 'Model', this.text('model', {placeholder: 'as the settings say', spellcheck: 'false'})),
        field('agent-temperature', 'Temperature', temperature),
      ),
      field('agent-short', 'Short description', this.text('short_description')),
      field('agent-tags', 'Tags', tags, 'Separated by commas.'),
      h('div', {class: 'check'}, structured, h('label', {for: 'agent-structured'}, 'The answer is an object of the fields below')),
    )
  }
  prompt() {
    const area = h('textarea', {rows: '12', class: 'prompt', spellcheck: 'true'})
    area.value = this.draft.doc.description ?? ''
    area.addEventListener('input', () => this.draft.put('description', area.value))
    fill(this.sections.system_prompt.body, field('agent-prompt', 'What the agent is told', area))
  }

  // --- tools

  setTools(list) {
    this.draft.put('tools', list)
    this.tools()
  }
  tools() {
    const list = Array.isArray(this.draft.doc.tools) ? this.draft.doc.tools : []
    const rows = list.map((tool, i) => {
      const name = toolName(tool)
      const hint = h('input', {type: 'text', value: tool?.description ?? '', placeholder: 'when to use it', 'aria-label': `When to use ${name}`})
      hint.addEventListener('input', () => {
        const now = [...this.draft.doc.tools]
        now[i] = {...(isMap(now[i]) ? now[i] : {name}), description: hint.value}
        this.draft.put('tools', now)
      })
      const known = this.known.some((t) => t.name === name)
      return h('li', null, icon('tool'), h('code', {class: known ? '' : 'unknown'}, name), hint, iconButton('cross', `Remove ${name}`, () => this.setTools(list.filter((_, k) => k !== i))))
    })
    const filter = h('input', {type: 'search', id: 'tool-filter', placeholder: 'Filter', 'aria-label': 'Filter the tools'})
    const choices = h('ul', {class: 'choices', 'aria-label': 'Tools that can be added'})
    const offer = () => {
      const has = new Set((this.draft.doc.tools ?? []).map(toolName))
      const words = filter.value.toLowerCase()
      fill(
        choices,
        this.known
          .filter((t) => !has.has(t.name) && `${t.name} ${t.description}`.toLowerCase().includes(words))
          .map((t) => h('li', null, h('button', {type: 'button', class: 'small', 'aria-label': `Add ${t.name}`, onclick: () => this.setTools([...(this.draft.doc.tools ?? []), {name: t.name}])}, icon('plus'), t.name), h('span', {class: 'muted small'}, t.description))),
      )
    }
    filter.addEventListener('input', offer)
    offer()
    fill(
      this.sections.tools.body,
      rows.length ? h('ul', {class: 'tool-list', 'aria-label': 'Tools of the agent'}, rows) : h('p', {class: 'muted'}, 'It calls no tools.'),
      h('details', {open: this.adding === true, ontoggle: (e) => (this.adding = e.target.open)}, h('summary', null, 'Add a tool'), filter, choices),
    )
  }

  // --- fields of the answer

  change(f) {
    const doc = structuredClone(this.draft.doc)
    doc.properties = isMap(doc.properties) ? doc.properties : {}
    doc.required = Array.isArray(doc.required) ? doc.required : []
    f(doc)
    this.draft.set(doc, 'form')
  }
  properties() {
    const {doc} = this.draft
    const properties = isMap(doc.properties) ? doc.properties : {}
    const required = new Set(Array.isArray(doc.required) ? doc.required : [])
    const rows = Object.entries(properties).map(([name, schema]) => this.property(name, isMap(schema) ? schema : {}, required.has(name)))
    const name = h('input', {type: 'text', id: 'field-name', placeholder: 'name', spellcheck: 'false', 'aria-label': 'Name of a new field'})
    const add = (e) => {
      e.preventDefault()
      const key = name.value.trim()
      if (!key || Object.hasOwn(properties, key) || key === '__proto__') return
      this.change((d) => (d.properties[key] = {type: 'string', description: ''}))
      this.properties()
      document.getElementById('field-name')?.focus()
    }
    fill(
      this.sections.properties.body,
      rows.length ? h('ul', {class: 'tree'}, rows) : h('p', {class: 'muted'}, 'The answer is text, without fields.'),
      h('form', {class: 'add-field', onsubmit: add}, name, h('button', {type: 'submit', class: 'small'}, icon('plus'), 'Add a field')),
    )
  }
  property(name, schema, required) {
    const set = (key, value) =>
      this.change((d) => {
        d.properties[name] = {...(isMap(d.properties[name]) ? d.properties[name] : {}), [key]: value}
      })
    const type = h('select', {'aria-label': `Type of ${name}`, onchange: (e) => set('type', e.target.value)}, [...new Set([...TYPES, ...(typeof schema.type === 'string' ? [schema.type] : [])])].map((t) => h('option', {value: t, selected: t === schema.type}, t)))
    const about = h('input', {type: 'text', value: schema.description ?? '', placeholder: 'what it means', 'aria-label': `What ${name} means`, oninput: (e) => set('description', e.target.value)})
    const must = h('input', {
      type: 'checkbox',
      checked: required,
      'aria-label': `${name} is required`,
      onchange: (e) => this.change((d) => (d.required = e.target.checked ? [...new Set([...d.required, name])] : d.required.filter((r) => r !== name))),
    })
    const away = iconButton('cross', `Remove ${name}`, () => {
      this.change((d) => {
        delete d.properties[name]
        d.required = d.required.filter((r) => r !== name)
      })
      this.properties()
    })
    const inner = isMap(schema.properties) ? schema.properties : isMap(schema.items?.properties) ? schema.items.properties : null
    return h('li', {'data-property': name}, h('div', {class: 'property'}, h('code', null, name), type, about, h('label', {class: 'small'}, must, ' required'), away), inner ? this.inner(inner) : null)
  }
  inner(properties) {
    return h(
      'ul',
      {class: 'tree'},
      Object.entries(properties).map(([name, s]) => h('li', null, h('code', null, name), ' ', h('span', {class: 'muted small'}, `${s?.type ?? ''} ${s?.description ?? ''}`), isMap(s?.properties) ? this.inner(s.properties) : null)),
    )
  }

  // An agent points at a section, or at a field of the answer, for three seconds.
  focus(name, property, message) {
    const section = this.sections[name]
    if (!section) return
    const path = typeof property === 'string' ? property.replace(/^\/?(properties\/)?/, '').split('/')[0] : ''
    const el = (path && section.el.querySelector(`[data-property="${CSS.escape(path)}"]`)) || section.el
    section.note.textContent = typeof message === 'string' ? message.slice(0, 300) : ''
    section.note.hidden = !section.note.textContent
    el.classList.add('pointed')
    el.scrollIntoView({block: 'nearest', behavior: 'smooth'})
    setTimeout(() => {
      el.classList.remove('pointed')
      section.note.hidden = true
    }, 3000)
  }
}
