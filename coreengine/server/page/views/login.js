// The form for an API key: the server gives a cookie for it that scripts cannot read. The key is kept nowhere.
import {get, send} from '../api.js'
import {loggedIn} from '../app.js'
import {fill, h, icon} from '../dom.js'

export const title = 'Log in'

// A cookie of an old login keeps its browser out of a server that asks for nothing: it goes first.
async function isOpen() {
  try {
    await send('POST', '/logout')
    await get('/login')
    return true
  } catch {
    return false
  }
}

export async function show(main) {
  if (await isOpen()) return void (await loggedIn())
  const key = h('input', {id: 'key', type: 'password', autocomplete: 'current-password', spellcheck: 'false', required: true, placeholder: 'rv_…', 'aria-describedby': 'key-help'})
  const error = h('p', {class: 'error', role: 'alert', hidden: true})
  const button = h('button', {type: 'submit', class: 'primary'}, 'Log in')
  const form = h(
    'form',
    {class: 'login'},
    h('img', {src: 'page/icon.svg', alt: '', width: '48', height: '48'}),
    h('h1', null, 'Log in to reeve'),
    h('div', {class: 'field'}, h('label', {for: 'key'}, 'API key'), key, h('p', {id: 'key-help', class: 'muted small'}, 'An operator makes one with ', h('code', null, 'reeve keys create'), '.')),
    error,
    button,
  )
  form.addEventListener('submit', async (e) => {
    e.preventDefault()
    button.disabled = true
    error.hidden = true
    try {
      await send('POST', '/login', {key: key.value.trim()})
      key.value = ''
      await loggedIn()
    } catch (failure) {
      error.textContent = failure.status === 401 ? 'This key is not valid: it is wrong, was revoked, or has expired.' : (failure.detail ?? failure.message)
      if (failure.retryAfter) error.textContent += ` Try again in ${failure.retryAfter} s.`
      error.hidden = false
      key.select()
    }
    button.disabled = false
  })
  fill(main, h('div', {class: 'login-box'}, form))
  key.focus()
}
