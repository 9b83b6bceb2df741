/** Copies a text, and shows a confirmation for two seconds. */
import { Box, Button, type ButtonProps, Group, Text } from '@mantine/core'
import { useClipboard } from '@mantine/hooks'
import { Icon } from '../shell/icons.tsx'
import { t } from '../strings/language.ts'

interface CopyProps extends Pick<ButtonProps, 'size' | 'variant'> {
  readonly text: string
  /** Describes the text in the button's accessible name. */
  readonly what: string
  readonly onCopy?: (() => void) | undefined
}

export function CopyButton({ text, what, onCopy, size = 'xs', variant = 'default' }: CopyProps) {
  const { copied, copy } = useClipboard({ timeout: 2_000 })
  return (
    <Button
      flex="none"
      size={size}
      variant={variant}
      leftSection={<Icon name={copied ? 'check' : 'copy'} size={14} />}
      aria-label={copied ? t('common.copiedThis', { what }) : t('common.copyThis', { what })}
      onClick={() => {
        copy(text)
        onCopy?.()
      }}
    >
      {copied ? t('common.copied') : t('common.copy')}
    </Button>
  )
}

interface CodeBlockProps {
  readonly code: string
  readonly what: string
  /** Called when the user copies all or part of the code. */
  readonly onCopy?: () => void
}

export function CodeBlock({ code, what, onCopy }: CodeBlockProps) {
  return (
    <Box className="code-block">
      <Group justify="space-between" wrap="nowrap" px="sm" py={6} className="code-block-head">
        <Text size="xs" c="dimmed">
          {what}
        </Text>
        <CopyButton text={code} what={what} onCopy={onCopy} />
      </Group>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a scrollable region must be reachable by keyboard */}
      <section tabIndex={0} aria-label={what} onCopy={onCopy}>
        <pre>{code}</pre>
      </section>
    </Box>
  )
}
