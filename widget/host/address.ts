/** Finds the addresses of the server and the frame. */
import type { WidgetOptions } from '../options.ts'
import { publicPartOf } from '../values.ts'

/** Returns whether a host name that a browser has normalized always refers to this machine. */
export function isLocal(hostname: string): boolean {
  return /localhost$|^127[.\d]+$|^\[::1/.test(hostname)
}

/**
 * Resolves an address against the page's URL instead of `<base>`, which user content may contain; undefined
 * if the address is invalid.
 */
export function toUrl(address: string): URL | undefined {
  try {
    return new URL(address, location.href)
  } catch {
    return undefined
  }
}

/** Returns the origin of the server: that of `widgetUrl`, `endpoint`, the script or the page. */
export function serverOf(
  { widgetUrl, endpoint }: Pick<WidgetOptions, 'widgetUrl' | 'endpoint'>,
  scriptUrl = '',
): string {
  return `${toUrl(widgetUrl ?? endpoint ?? scriptUrl)?.origin}`
}

/**
 * Returns the frame's address, which contains only the key's public part. With `.js`, it is the address of
 * the script that contains the agent's theme.
 */
export function frameAddressOf(
  options: Pick<WidgetOptions, 'widgetUrl' | 'endpoint' | 'apiKey'>,
  scriptUrl: string | undefined,
  extension: '' | '.js' = '',
): string {
  return `${serverOf(options, scriptUrl)}/embed/frame${extension}?key=${publicPartOf(options.apiKey)}`
}
