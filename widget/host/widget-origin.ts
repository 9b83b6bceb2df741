/** Where the frame is served. */
import type { WidgetOptions } from '../options.ts'
import { toUrl } from './read-options.ts'

/**
 * The frame's address: of the key it holds the public part alone. Its server is the first of these that is given: `widgetUrl`,
 * `endpoint`, where the script came from; else the page's own. Decision: 11.
 */
export function frameAddressOf(
  { widgetUrl, endpoint, apiKey = '' }: Pick<WidgetOptions, 'widgetUrl' | 'endpoint' | 'apiKey'>,
  scriptUrl: string | undefined,
): string {
  const origin = toUrl(widgetUrl ?? endpoint ?? scriptUrl ?? '')?.origin
  const [publicPart = ''] = /^agnt_key-[0-9A-Za-z]{12}/.exec(apiKey) ?? []
  return `${origin}/embed/frame?key=${publicPart}`
}

/** Whether the page is one that its developer runs. */
export function isLocalPage(): boolean {
  return /(^|\.)localhost$|^127\.|^\[::1/.test(location.hostname)
}
