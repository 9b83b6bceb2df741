/** Derives the address and the options of a trial's frame from the definition. */

import type { FrameOptions } from '../../../widget/options.ts'
import type { Outputs } from '../../api.ts'

type Description = Outputs['agents']['describeDraft']

/**
 * Returns the frame's address, which lists the sites of the definition's images, because the frame's content
 * security policy allows only those. A different list reloads the frame.
 */
export function toFrameAddress(agent: Description | undefined): string {
  const { avatar, logo } = agent?.theme ?? {}
  const urls = [avatar, logo].filter((url) => url?.startsWith('https:'))
  const hosts = agent?.imageHosts.map((host) => `https://${host.toLowerCase()}`) ?? []
  const origins = new Set([...urls.map((url) => new URL(url as string).origin), ...hosts])
  const query = new URLSearchParams([...origins].toSorted().map((origin) => ['image', origin]))
  return query.size === 0 ? '/embed/trial' : `/embed/trial?${query}`
}

/**
 * Returns the options of an embedded chat without a key, in the agent's theme. Uses the console's color
 * scheme unless the theme sets one.
 */
export function toFrameOptions(
  theme: Description['theme'] | undefined,
  consoleScheme: 'light' | 'dark',
): FrameOptions {
  const { colorScheme = 'auto', ...appearance } = theme ?? {}
  return {
    ...appearance,
    theme: colorScheme === 'auto' ? consoleScheme : colorScheme,
    debug: false,
    history: false,
    isInline: true,
    given: [],
  }
}
