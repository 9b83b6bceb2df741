/** A piece of code to take along. */
import { Box, Group, Text } from '@mantine/core'
import { CopyButton } from '../CopyButton.tsx'

export function CodeBlock({ code, what }: { readonly code: string; readonly what: string }) {
  return (
    <Box className="code-block">
      <Group justify="space-between" wrap="nowrap" px="sm" py={6} className="code-block-head">
        <Text size="xs" c="dimmed">
          {what}
        </Text>
        <CopyButton text={code} what={what} />
      </Group>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls has to be reached by keyboard */}
      <section tabIndex={0} aria-label={what}>
        <pre>{code}</pre>
      </section>
    </Box>
  )
}
