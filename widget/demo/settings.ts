/** What can be tried of the widget's options, as a form. */
import { make } from './make.ts'

/** The form; its fields carry the names of the options. */
export function drawSettings(): HTMLFormElement {
  const form = make('form', { className: 'settings' })
  form.append(
    choice('theme', ['auto', 'light', 'dark']),
    choice('position', ['bottom-right', 'bottom-left']),
    field('primaryColor', { type: 'color', value: '#4f46e5' }),
    field('width', { type: 'number', value: '360', min: '240', max: '900' }),
    field('height', { type: 'number', value: '520', min: '240', max: '900' }),
    choice('language', ['', 'en', 'de', 'fr', 'es', 'pt', 'ar', 'he', 'ja', 'zh']),
    field('title', { placeholder: "the agent's" }),
    field('greeting', { placeholder: "the agent's" }),
    field('welcomeMessage', { value: 'Welcome' }),
    field('defaultUI', { type: 'checkbox', checked: true }),
    field('debug', { type: 'checkbox' }),
  )
  form.addEventListener('submit', (event) => event.preventDefault())
  return form
}

/** What the form says; an empty field is left to the widget. */
export function readSettings(form: HTMLFormElement): Record<string, unknown> {
  const fields = [...form.elements] as (HTMLInputElement | HTMLSelectElement)[]
  return Object.fromEntries(fields.map((one) => [one.name, read(one)]))
}

function read(one: HTMLInputElement | HTMLSelectElement): unknown {
  if (one.type === 'checkbox') return (one as HTMLInputElement).checked
  return one.value === '' ? undefined : one.value
}

function field(name: string, attributes: Partial<HTMLInputElement>): HTMLElement {
  return make('label', {}, name, make('input', { name, ...attributes }))
}

function choice(name: string, values: readonly string[]): HTMLElement {
  const options = values.map((value) => make('option', { value }, value === '' ? 'of the browser' : value))
  return make('label', {}, name, make('select', { name }, ...options))
}
