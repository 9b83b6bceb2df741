/** Copies a text, and says for two seconds that it did. */
import { Button, type ButtonProps } from '@mantine/core'
import { useClipboard } from '@mantine/hooks'
import { Icon } from '../shell/icons.tsx'

interface CopyProps extends Pick<ButtonProps, 'size' | 'variant'> {
  readonly text: string
  /** What is copied, for the button's name. */
  readonly what: string
}

export function CopyButton({ text, what, size = 'xs', variant = 'default' }: CopyProps) {
  const { copied, copy } = useClipboard({ timeout: 2_000 })
  return (
    <Button
      size={size}
      variant={variant}
      leftSection={<Icon name={copied ? 'check' : 'copy'} size={14} />}
      aria-label={copied ? `Copied ${what}` : `Copy ${what}`}
      onClick={() => copy(text)}
    >
      {copied ? 'Copied' : 'Copy'}
    </Button>
  )
}
