/** Builds the elements of the demo page. */

export interface Page {
  readonly heading: HTMLHeadingElement
  /** Hidden until the console session's agents are known. */
  readonly agents: HTMLSelectElement
  readonly keyForm: HTMLFormElement
  readonly key: HTMLInputElement
  readonly keyProblem: HTMLElement
  /** Hidden unless the agent uses the mock model. */
  readonly mockNote: HTMLElement
  readonly settings: HTMLFormElement
  readonly actions: Readonly<Record<'mount' | 'open' | 'close' | 'toggle' | 'destroy', HTMLButtonElement>>
  readonly context: HTMLInputElement
  readonly note: HTMLTextAreaElement
  readonly shared: HTMLElement
  readonly events: HTMLElement
}

const MAX_EVENTS = 100
const FROM_AGENT = 'from the agent'

export function drawPage(): Page {
  const { loader = '', integrity = '' } = document.documentElement.dataset
  const page = makeParts()
  const actions = make('div', { className: 'actions' }, ...Object.values(page.actions))
  document.body.append(
    make(
      'main',
      {},
      page.heading,
      make('p', {}, 'This page embeds the chat widget as any other website does.'),
      section(
        '1. An agent',
        label('Choose an agent', page.agents),
        drawKeyHelp(page.keyForm),
        page.keyProblem,
        page.mockNote,
      ),
      section(
        '2. Options',
        make('p', {}, "The chat has the agent's theme. These options override it on this page."),
        page.settings,
        actions,
      ),
      section(
        '3. Context',
        make('p', {}, 'The widget sends this text with each message.'),
        label('Note for the agent', page.context),
      ),
      section(
        '4. Insert, share and use tools',
        make(
          'p',
          {},
          'You can insert a reply into the note, or share it. With the mock model, these messages call tools:',
        ),
        code(
          '[[tool:postMessage_read_note {}]]',
          '[[tool:postMessage_set_color {"color":"teal"}]]',
          '[[tool:postMessage_clear_note {}]]',
        ),
        label('Note', page.note),
        make('h3', {}, 'Shared'),
        page.shared,
      ),
      section('5. Events', page.events),
      section('6. Embed it on your page', ...drawTag(loader, integrity)),
    ),
  )
  return page
}

function makeParts(): Page {
  const key = make('input', {
    name: 'key',
    autocomplete: 'off',
    spellcheck: false,
    placeholder: 'agnt_key-…',
    required: true,
  })
  const button = (text: string) => make('button', { type: 'button' }, text)
  return {
    heading: make('h1', {}, 'The chat widget'),
    agents: make('select', {}),
    keyForm: make('form', { className: 'key' }, label('Agent key', key), make('button', {}, 'Start')),
    key,
    keyProblem: make('p', { className: 'problem', role: 'alert' }),
    mockNote: make(
      'p',
      { className: 'mock-note', hidden: true },
      'Answers come from the built-in mock model, which only repeats messages. To connect a model, open the ',
      make('a', { href: '/console/providers' }, 'console'),
      '.',
    ),
    settings: drawSettings(),
    actions: {
      mount: button('mount'),
      open: button('open'),
      close: button('close'),
      toggle: button('toggle'),
      destroy: button('destroy'),
    },
    context: make('input', { value: 'The visitor is reading about boats.' }),
    note: make('textarea', { rows: 4, value: 'A note on this page.' }),
    shared: make('pre', {}, 'Nothing yet.'),
    events: make('ol', { className: 'events' }),
  }
}

function drawKeyHelp(keyForm: HTMLFormElement): HTMLElement {
  const createAgent = `curl ${location.origin}/v1/agents -H "Authorization: Bearer $PARENT_KEY" -H "Content-Type: application/yaml" --data-binary @examples/concierge.yaml`
  return make(
    'details',
    { open: true, className: 'by-key' },
    make('summary', {}, 'Use an agent key'),
    make(
      'p',
      {},
      'Paste an agent key. The key remains in this tab. To create an agent, run this command and copy agent_key from the response:',
    ),
    code(createAgent),
    make('p', {}, 'PARENT_KEY is the key that the server printed when it first started.'),
    keyForm,
  )
}

/**
 * Offers the console session's agents and collapses the form for a key. Selects the agent whose key is in use,
 * if the list contains it.
 */
export function showAgents({ agents }: Page, list: readonly Agent[], usedKey: string): void {
  agents.replaceChildren(...list.map(({ name, agent_key }) => make('option', { value: agent_key }, name)))
  agents.value = usedKey
  agents.parentElement?.classList.add('known')
  const byKey = document.querySelector<HTMLDetailsElement>('.by-key')
  if (byKey !== null) byKey.open = false
}

export interface Agent {
  readonly name: string
  readonly agent_key: string
}

function drawTag(loader: string, integrity: string): Node[] {
  const source = `${location.origin}/embed/parley.js`
  return [
    code(`<script async src="${source}" data-api-key="agnt_key-…"></script>`),
    make('p', {}, 'Pinned to this version with an integrity hash:'),
    code(
      `<script async src="${location.origin}${loader}" crossorigin="anonymous"\n  integrity="${integrity}" data-api-key="agnt_key-…"></script>`,
    ),
    make('p', {}, 'Required content security policy directives:'),
    code(`script-src ${location.origin}; frame-src ${location.origin}`),
  ]
}

function section(title: string, ...children: Node[]): HTMLElement {
  return make('section', {}, make('h2', {}, title), ...children)
}

function label(text: string, field: HTMLElement): HTMLElement {
  return make('label', {}, text, field)
}

function code(...lines: readonly string[]): HTMLElement {
  return make('pre', { tabIndex: 0 }, lines.join('\n'))
}

export function addEvent({ events }: Page, name: string, detail: string): void {
  events.prepend(make('li', {}, make('b', {}, name), ` ${detail}`))
  while (events.childElementCount > MAX_EVENTS) events.lastElementChild?.remove()
}

function make<Name extends keyof HTMLElementTagNameMap>(
  name: Name,
  properties: Partial<HTMLElementTagNameMap[Name]> = {},
  ...children: (Node | string)[]
): HTMLElementTagNameMap[Name] {
  const element = Object.assign(document.createElement(name), properties)
  element.append(...children)
  return element
}

/** Builds the options form, whose fields have the options' names. */
function drawSettings(): HTMLFormElement {
  const form = make('form', { className: 'settings' })
  form.append(
    choice('theme', ['auto', 'light', 'dark']),
    field('primaryColor', { placeholder: FROM_AGENT }),
    choice('headerStyle', ['plain', 'solid', 'gradient']),
    field('headerColor', { placeholder: FROM_AGENT }),
    field('avatar', { placeholder: FROM_AGENT }),
    choice('font', ['inter', 'system', 'rounded', 'serif', 'mono']),
    field('radius', { type: 'number', placeholder: FROM_AGENT, min: '0', max: '24' }),
    choice('density', ['comfortable', 'compact']),
    choice('launcherIcon', ['chat', 'question', 'sparkles', 'wave', 'avatar']),
    field('launcherLabel', { placeholder: FROM_AGENT }),
    field('teaser', { placeholder: FROM_AGENT }),
    choice('position', ['bottom-right', 'bottom-left']),
    field('width', { type: 'number', placeholder: FROM_AGENT, min: '240', max: '900' }),
    field('height', { type: 'number', placeholder: FROM_AGENT, min: '240', max: '900' }),
    choice('language', ['en', 'de', 'fr', 'es', 'it', 'pt', 'ar', 'he', 'ja', 'zh'], 'browser language'),
    field('title', { placeholder: FROM_AGENT }),
    field('greeting', { placeholder: FROM_AGENT }),
    field('welcomeMessage', {}),
    field('defaultUI', { type: 'checkbox', checked: true }),
    field('debug', { type: 'checkbox' }),
  )
  form.addEventListener('submit', (event) => event.preventDefault())
  return form
}

/** Reads the options from the form; an empty field selects the agent's setting or the widget's default. */
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

/** Offers the values, and first the default, which sets no option. */
function choice(name: string, values: readonly string[], standard = FROM_AGENT): HTMLElement {
  const options = ['', ...values].map((value) => make('option', { value }, value || standard))
  return make('label', {}, name, make('select', { name }, ...options))
}
