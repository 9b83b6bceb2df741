/**
 * Runs the page's proactive rules after a delay, at a scroll position, or when the pointer leaves the page.
 */
import type { HostWidget } from '../host/extras.ts'
import type { ProactiveRule } from '../options.ts'

/** Applies each rule at most once. Rules of other pages are ignored. */
export function runRules(
  { ended }: Pick<HostWidget, 'ended'>,
  rules: readonly ProactiveRule[],
  apply: (rule: ProactiveRule) => void,
): void {
  for (const rule of rules) {
    if (!isOnPage(rule.pages, location.pathname)) continue
    const timers: ReturnType<typeof setTimeout>[] = []
    const done = new AbortController()
    const fire = () => {
      done.abort()
      apply(rule)
    }
    ended.signal.addEventListener('abort', () => done.abort())
    done.signal.addEventListener('abort', () => timers.forEach(clearTimeout))
    const { after, scroll, exitIntent } = rule
    if (after !== undefined) timers.push(setTimeout(fire, after * 1000))
    if (scroll !== undefined) watchScroll(scroll, fire, done.signal)
    if (exitIntent) watchExit(fire, done.signal)
  }
}

/** A path such as `/rooms/*` also matches everything below it; without paths, every page matches. */
function isOnPage(pages: readonly string[] | undefined, path: string): boolean {
  if (pages === undefined) return true
  return pages.some((page) => (page.endsWith('*') ? path.startsWith(page.slice(0, -1)) : path === page))
}

function watchScroll(percent: number, fire: () => void, signal: AbortSignal): void {
  const check = () => {
    const { scrollHeight, clientHeight, scrollTop } = document.documentElement
    const room = scrollHeight - clientHeight
    if (room > 0 && (scrollTop / room) * 100 >= percent) fire()
  }
  addEventListener('scroll', check, { passive: true, signal })
  // The visitor may have scrolled before this script has loaded.
  check()
}

/** Fires when the pointer leaves through the top of the page, towards the browser's tabs and address bar. */
function watchExit(fire: () => void, signal: AbortSignal): void {
  const check = ({ clientY, relatedTarget }: MouseEvent) => {
    if (relatedTarget === null && clientY <= 0) fire()
  }
  document.addEventListener('mouseout', check, { signal })
}
