/** Shares text with the page, or copies it if the page does not receive it. */
import type { FrameMessage } from '../messages.ts'
import { copyText } from './copy-text.ts'

type Share = Extract<FrameMessage, { type: 'share' }>

export type ShareOutcome = 'shared' | 'copied' | 'failed'

export function createSharing(post: (message: Share) => void) {
  /** The page responds in the order of the requests. */
  const waiting: ((isReceived: boolean) => void)[] = []
  return {
    async share(kind: Share['kind'], text: string): Promise<ShareOutcome> {
      const isReceived = await new Promise<boolean>((resolve) => {
        waiting.push(resolve)
        post({ type: 'share', kind, text })
      })
      if (isReceived) return 'shared'
      return (await copyText(text)) ? 'copied' : 'failed'
    },
    settle: (isReceived: boolean) => waiting.shift()?.(isReceived),
  }
}
