/** Shows the design tokens that are not colors, and all icons. */
import { Group, Stack, Text } from '@mantine/core'
import { Icon, iconNames } from '../shell/icons.tsx'
import { Section } from './Section.tsx'

export function TokenSections() {
  return (
    <>
      <Section title="Shape and shadow">
        <Group gap="lg">
          {shapes.map((name) => (
            <Stack key={name} gap={4} align="center">
              <div className="shape" data-shape={name} />
              <code>--{name}</code>
            </Stack>
          ))}
        </Group>
      </Section>
      <Section title="Spacing">
        <Stack gap="xs">
          {spaces.map((name) => (
            <Group key={name} gap="sm">
              <code className="space-name">--{name}</code>
              <div className="space" data-space={name} />
            </Group>
          ))}
        </Stack>
      </Section>
      <Section title="Motion">
        <Group gap="lg">
          <button type="button" className="motion" data-motion="fast">
            --fast
          </button>
          <button type="button" className="motion" data-motion="slow">
            --slow
          </button>
          <Text size="sm" c="dimmed">
            Point at a button to see the transition.
          </Text>
        </Group>
      </Section>
      <Section title="Icons">
        <Group gap="md">
          {iconNames.map((name) => (
            <Icon key={name} name={name} />
          ))}
        </Group>
      </Section>
    </>
  )
}

const shapes = ['radius-small', 'radius', 'radius-large', 'shadow-raised', 'shadow-overlay']
const spaces = ['space-1', 'space-2', 'space-3', 'space-4', 'space-6', 'space-8', 'space-12']
