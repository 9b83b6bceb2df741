/** Copies a text, and says so. */

import { useFrame } from '../frame-context.ts'
import { copyText } from '../lib/copy-text.ts'
import { CopyIcon, DoneIcon } from '../lib/icons.tsx'
import { useFlash } from '../lib/use-flash.ts'

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
