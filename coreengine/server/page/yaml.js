// A JSON value as YAML that every reader of YAML reads back as the same: long texts as blocks, other texts in quotes
// where they could be read as something else.
const PLAIN = /^[A-Za-z_][A-Za-z0-9_ ./()-]*[A-Za-z0-9_./()-]$|^[A-Za-z_]$/
const WORDS = /^(true|false|yes|no|on|off|null|y|n)$/i

function scalar(v) {
  if (typeof v !== 'string') return JSON.stringify(v ?? null)
  return PLAIN.test(v) && !WORDS.test(v) ? v : JSON.stringify(v)
}

const isBlock = (v) => typeof v === 'string' && v.includes('\n') && !/[\t\r\u0000-\u0008\u000b-\u001f\u007f-\u009f\u2028\u2029\ufeff]/.test(v) && !/^\s/.test(v) && !/ \n| $/.test(v)

function block(v, indent) {
  const sign = v.endsWith('\n') ? (v.endsWith('\n\n') ? '|+' : '|') : '|-'
  const text = v.replace(/\n$/, '')
  return `${sign}\n${text
    .split('\n')
    .map((line) => (line ? `${indent}${line}` : ''))
    .join('\n')}`
}

function value(v, indent) {
  if (isBlock(v)) return ` ${block(v, `${indent}  `)}`
  if (Array.isArray(v)) return v.length ? `\n${list(v, `${indent}  `)}` : ' []'
  if (v !== null && typeof v === 'object') return Object.keys(v).length ? `\n${map(v, `${indent}  `)}` : ' {}'
  return ` ${scalar(v)}`
}

const map = (o, indent) =>
  Object.entries(o)
    .map(([k, v]) => `${indent}${scalar(k)}:${value(v, indent)}`)
    .join('\n')

function list(items, indent) {
  return items
    .map((v) => {
      if (v !== null && typeof v === 'object' && Object.keys(v).length && !Array.isArray(v)) return `${indent}- ${map(v, `${indent}  `).slice(indent.length + 2)}`
      return `${indent}-${value(v, indent)}`
    })
    .join('\n')
}

export const toYaml = (doc) => `${map(doc, '')}\n`
