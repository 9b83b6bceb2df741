/**
 * Runs the page at `/embed/preview`, on which the console shows the widget at its actual size and position.
 */
import './style.css'

interface PreviewRequest {
  readonly type: 'preview'
  /** Options of `ParleyChat.mount`. */
  readonly options: Record<string, unknown>
  /** The page behind the widget; null for the sample page. */
  readonly pageUrl: string | null
}

type Chat = NonNullable<typeof window.ParleyChat> & { mount(options?: object): void; destroy(): void }

/** The teaser of the mounted widget; undefined before the console's first message. */
let shownTeaser: string | undefined

function show({ options, pageUrl }: PreviewRequest): void {
  document.documentElement.dataset.theme = String(options.theme ?? 'auto')
  showPage(pageUrl)
  const chat = window.ParleyChat as Chat
  const teaser = String(options.teaser ?? '')
  if (teaser === shownTeaser) {
    chat.configure?.(options)
    return
  }
  // The widget reads the teaser only when it starts, and hides it after the user has dismissed it.
  if (shownTeaser !== undefined) chat.destroy()
  sessionStorage.removeItem('parley-teaser-dismissed')
  chat.mount(options)
  shownTeaser = teaser
}

const page = document.createElement('div')
page.className = 'page'

/**
 * Shows the user's page in a sandboxed frame that cannot access this page, or the sample page if `pageUrl` is
 * null.
 */
function showPage(pageUrl: string | null): void {
  if (page.dataset.url === String(pageUrl)) return
  page.dataset.url = String(pageUrl)
  if (pageUrl === null) page.replaceChildren(...drawSample())
  else {
    const frame = document.createElement('iframe')
    frame.title = 'Your page'
    frame.setAttribute('sandbox', 'allow-scripts allow-forms')
    frame.src = pageUrl
    page.replaceChildren(frame)
  }
}

/** Draws a page of a shop with blocks instead of text. */
function drawSample(): Node[] {
  const header = block('header', block('logo'), block('link'), block('link'), block('link'))
  const hero = block('hero', block('title'), block('line'), block('line short'), block('button'))
  const cards = block(
    'cards',
    ...Array.from({ length: 6 }, () => block('card', block('picture'), block('line'), block('line short'))),
  )
  return [header, hero, cards]
}

function block(className: string, ...children: Node[]): HTMLElement {
  const element = document.createElement('div')
  element.className = className
  element.append(...children)
  return element
}

function start(): void {
  page.setAttribute('aria-hidden', 'true')
  document.body.append(page)
  window.addEventListener('message', ({ source, origin, data }: MessageEvent<PreviewRequest | null>) => {
    if (source !== window.parent || origin !== window.location.origin || data?.type !== 'preview') return
    page.toggleAttribute('aria-hidden', data.pageUrl === null)
    show(data)
  })
  window.parent.postMessage({ type: 'preview-ready' }, window.location.origin)
}

if (document.readyState === 'complete') start()
else window.addEventListener('load', start)
