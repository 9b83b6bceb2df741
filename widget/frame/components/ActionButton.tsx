/** Shows the small buttons below messages, such as the copy button. */

import { type ReactNode, useEffect, useState } from 'react'
import { copyText } from '../copy-text.ts'
import { useFrame } from '../frame-context.ts'
import { CopyIcon, DoneIcon } from './icons.tsx'

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

interface ActionProps {
  readonly name: string
  readonly icon: ReactNode
  readonly act: () => void
  readonly isDisabled?: boolean
  /** Set for buttons that start and stop an action. */
  readonly isPressed?: boolean
  /** Set for buttons that show and hide a form. */
  readonly isExpanded?: boolean
}

export function Action({ name, icon, act, isDisabled = false, isPressed, isExpanded }: ActionProps) {
  return (
    <button
      type="button"
      className="action"
      title={name}
      aria-label={name}
      aria-pressed={isPressed}
      aria-expanded={isExpanded}
      aria-disabled={isDisabled}
      onClick={isDisabled ? undefined : act}
    >
      {icon}
    </button>
  )
}

const FLASH_MS = 2000

/** Returns a flag and a function that sets it for two seconds. */
export function useFlash(): readonly [boolean, () => void] {
  const [count, setCount] = useState(0)
  useEffect(() => {
    if (count === 0) return
    const timer = setTimeout(() => setCount(0), FLASH_MS)
    return () => clearTimeout(timer)
  }, [count])
  return [count > 0, () => setCount((before) => before + 1)]
}
