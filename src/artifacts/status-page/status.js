// @ts-check
/** Updates the status page: follows the status stream and replaces the parts of the page that change. */

/**
 * Time without data after which the connection is considered lost. The server sends data every 15 seconds.
 */
const SILENCE_MS = 45_000
const LONGEST_PAUSE_MS = 15_000
/** Interval for updating the received bytes while the total size is unknown. */
const FIGURES_EVERY_MS = 2_000

const main = /** @type {HTMLElement} */ (document.querySelector('main'))
const away = /** @type {HTMLElement} */ (document.getElementById('away'))

/**
 * The HTML of each piece as the server sent it, before scripts or the browser changed it. @type
 * {Map<string, string>}
 */
const pieces = new Map()
for (const [name, element] of listPieces(document)) pieces.set(name, element.innerHTML)

/** The last status as JSON, without its progress. */
let lastStatus = ''
let areFiguresDue = false
let refreshing = Promise.resolve()
let hasBeenThere = isThere()

/** @param {Document} page @returns {[string, HTMLElement][]} */
function listPieces(page) {
  const elements = /** @type {NodeListOf<HTMLElement>} */ (page.querySelectorAll('[data-piece]'))
  return [...elements].map((element) => [String(element.dataset.piece), element])
}

function isThere() {
  return ['uploading', 'processing', 'ready'].includes(String(main.dataset.state))
}

function isFollowed() {
  return main.dataset.followed === 'yes'
}

/**
 * Reloads the page's parts. Requests run one at a time, so that an older page never replaces a newer one.
 * @throws when the page is unavailable
 */
function refresh() {
  refreshing = refreshing.catch(() => {}).then(replacePage)
  return refreshing
}

async function replacePage() {
  const response = await fetch(location.href, { signal: AbortSignal.timeout(SILENCE_MS) })
  if (response.status >= 500) throw new Error(`the server returned ${response.status} for the page`)
  const page = new DOMParser().parseFromString(await response.text(), 'text/html')
  const newMain = page.querySelector('main')
  if (newMain?.dataset.state === undefined) throw new Error('the response is not a status page')
  // Leaves the page unchanged when rate-limited, because the error page shows less.
  if (response.status === 429) return
  Object.assign(main.dataset, newMain.dataset)
  document.title = page.title
  for (const [name, element] of listPieces(page)) replacePiece(name, element)
  if (isThere()) hasBeenThere = true
  else if (main.dataset.state === 'unknown' && hasBeenThere) showGone()
}

/**
 * Leaves unchanged pieces in place, so that videos keep playing and screen readers do not repeat text.
 * @param {string} name @param {HTMLElement} element
 */
function replacePiece(name, element) {
  if (pieces.get(name) === element.innerHTML) return
  pieces.set(name, element.innerHTML)
  document.querySelector(`[data-piece=${name}]`)?.replaceChildren(...element.childNodes)
}

function showGone() {
  const says = document.querySelector('[data-piece=says]')
  const facts = document.querySelector('[data-piece=facts] p')
  if (says === null || facts === null) return
  document.title = 'Upload not found'
  says.textContent = document.title
  facts.textContent = 'The upload was deleted or has expired.'
}

/**
 * @typedef {{ state: string, bytesReceived?: number, size?: number, progress?: number, acknowledged?:
 *   boolean }} Status
 * @param {Status} status
 */
async function show(status) {
  away.hidden = true
  const { bytesReceived, progress, ...rest } = status
  const hasChanged = lastStatus !== JSON.stringify(rest)
  const share = shareOf(status)
  if (hasChanged) {
    await refresh()
    lastStatus = JSON.stringify(rest)
  } else if (share !== undefined) moveBar(share)
  else refreshFigures()
}

function refreshFigures() {
  if (areFiguresDue) return
  areFiguresDue = true
  setTimeout(() => {
    areFiguresDue = false
    // Ignores the error, because the stream also reports an unavailable server.
    refresh().catch(() => {})
  }, FIGURES_EVERY_MS)
}

/** @param {Status} status */
function shareOf({ state, bytesReceived = 0, size, progress }) {
  if (state === 'processing') return progress
  return state === 'uploading' && size ? bytesReceived / size : undefined
}

/** @param {number} share */
function moveBar(share) {
  const bar = document.querySelector('progress')
  const percent = document.getElementById('percent')
  if (bar === null || percent === null) return
  bar.value = share
  percent.textContent = String(Math.floor(share * 100))
  document.title = document.title.replace(/^\d+ %/, `${percent.textContent} %`)
}

/**
 * Shows each status until the stream ends. Resolves to true if any status arrived.
 * @returns {Promise<boolean>}
 */
async function follow() {
  const ending = new AbortController()
  const giveUp = () => ending.abort()
  let silence = setTimeout(giveUp, SILENCE_MS)
  let isTold = false
  try {
    const headers = { Accept: 'text/event-stream' }
    const response = await fetch(`status${location.search}`, { headers, signal: ending.signal })
    if (!response.ok || response.body === null) return false
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader()
    let text = ''
    for (;;) {
      const { done, value } = await reader.read()
      if (done) return isTold
      clearTimeout(silence)
      silence = setTimeout(giveUp, SILENCE_MS)
      const events = (text + value).split('\n\n')
      text = events.pop() ?? ''
      for (const event of events) {
        if (event.startsWith('event: error')) return isTold
        if (!event.startsWith('data: ')) continue
        isTold = true
        await show(JSON.parse(event.slice('data: '.length)))
        if (!isFollowed()) return true
      }
    }
  } catch {
    return isTold
  } finally {
    clearTimeout(silence)
    ending.abort()
  }
}

/** Waits for the given time, or until the network is back. @param {number} ms @returns {Promise<void>} */
function pause(ms) {
  return new Promise((resolve) => {
    const end = () => {
      clearTimeout(timer)
      removeEventListener('online', end)
      resolve()
    }
    const timer = setTimeout(end, ms)
    addEventListener('online', end)
  })
}

let failures = 0
while (isFollowed()) {
  const isTold = await follow()
  if (!isFollowed()) break
  failures = isTold ? 0 : failures + 1
  away.hidden = await refresh().then(
    () => true,
    () => false,
  )
  // Random delays spread out the requests when many pages reconnect to a restarted server.
  await pause(Math.min(LONGEST_PAUSE_MS, 500 * 2 ** failures) * (0.5 + Math.random() / 2))
}
