/** Where the frame is served. */
import { toUrl } from './read-options.ts'

/** The origin of the first of these that is given, else the page's own. Decision: 11 (`widgetUrl`). */
export function widgetOriginOf(
  widgetUrl: string | undefined,
  endpoint: string | undefined,
  scriptUrl: string | undefined,
): string {
  const given = widgetUrl ?? endpoint ?? scriptUrl
  return (given === undefined ? undefined : toUrl(given)?.origin) ?? location.origin
}

/** The frame's address: of the key it holds the public part alone. Decision: 11. */
export function frameAddressOf(origin: string, apiKey: string | undefined): string {
  const publicPart = /^agnt_key-[0-9A-Za-z]{12}/.exec(apiKey ?? '')?.[0]
  return `${origin}/embed/frame${publicPart === undefined ? '' : `?key=${publicPart}`}`
}

/** Whether the page is one that its developer runs. */
export function isLocalPage(): boolean {
  return /^(localhost|.*\.localhost|127\.\d+\.\d+\.\d+|\[::1\])$/.test(location.hostname)
}
