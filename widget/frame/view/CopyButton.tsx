/** Copies a text, and says so. */

import { copyText } from './copy-text.ts'
import { useFrame } from './frame-context.ts'
import { CopyIcon, DoneIcon } from './icons.tsx'
import { useFlash } from './use-flash.ts'

export function CopyButton({ text, name }: { text: string; name: string }) {
  const { strings } = useFrame().language
  const [isCopied, flashCopied] = useFlash()
  const label = isCopied ? strings.copied : name
  return (
    <button
      type="button"
      className="action"
      title={label}
      aria-label={label}
      onClick={async () => {
        if (await copyText(text)) flashCopied()
      }}
    >
      {isCopied ? <DoneIcon /> : <CopyIcon />}
    </button>
  )
}
