// Amounts, states and values as people read them.
import {h} from './dom.js'

export function duration(ms) {
  if (!Number.isFinite(ms)) return ''
  if (ms < 1000) return `${Math.round(ms)} ms`
  const seconds = ms / 1000
  if (seconds < 60) return `${seconds.toFixed(seconds < 10 ? 1 : 0)} s`
  const minutes = Math.floor(seconds / 60)
  return minutes < 60 ? `${minutes} min ${Math.round(seconds % 60)} s` : `${Math.floor(minutes / 60)} h ${minutes % 60} min`
}

export const number = (n) => new Intl.NumberFormat('en').format(n ?? 0)
export const tokens = (usage) => (usage ? number((usage.input_tokens ?? 0) + (usage.output_tokens ?? 0)) : '')

export function money(usage) {
  const micro = usage?.cost_micro_usd
  if (!micro) return ''
  return `${usage.estimated ? '≤ ' : ''}$${(micro / 1e6).toFixed(micro < 10000 ? 6 : 4)}`
}

const RUN_WORDS = {interrupted: 'waits'}
export const badge = (status) => h('span', {class: `badge ${status}`}, RUN_WORDS[status] ?? status)
export const isOver = (status) => !['created', 'ready', 'queued', 'pending', 'running', 'interrupted'].includes(status)

// A value as text that is not too long for the page.
const MAX_SHOWN = 200000
export function pretty(value) {
  const text = typeof value === 'string' ? value : JSON.stringify(value, null, 2)
  return text.length > MAX_SHOWN ? `${text.slice(0, MAX_SHOWN)}\n… ${number(text.length - MAX_SHOWN)} characters more` : text
}
export const json = (value, label) => h('pre', {class: 'json', tabindex: '0', role: 'region', 'aria-label': label ?? 'Value'}, pretty(value))

// A text that is likely meant for people within an output; null: there is none.
export function textOf(value) {
  if (typeof value === 'string') return value
  for (const key of ['response', 'answer', 'text', 'message', 'summary']) if (typeof value?.[key] === 'string') return value[key]
  return null
}

// Calls f at most once in so many milliseconds, the last time after the last call; stop() ends that.
export function calmly(f, ms) {
  let timer = 0
  const call = () => {
    if (timer) return
    timer = setTimeout(() => {
      timer = 0
      f()
    }, ms)
  }
  call.stop = () => clearTimeout(timer)
  return call
}
