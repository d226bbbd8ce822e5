#!/usr/bin/env bash
# Runs inside the new root directory, from /tmp: users, network, GRUB, and nothing that need not be started.
#
#   setup.sh BOOT_IN_ROOT(yes|no) DISK_ID
set -euo pipefail
boot_in_root=$1
disk_id=$2

# --- names, users, keys -----------------------------------------------------------------------------------------------
echo labguest >/etc/hostname
printf '127.0.0.1 localhost\n127.0.1.1 labguest\n' >/etc/hosts
printf 'nameserver 10.0.2.3\n' >/etc/resolv.conf
printf '%s\n' "PARTUUID=$disk_id-01 / ext4 noatime 0 0" >/etc/fstab
[[ $boot_in_root == yes ]] || printf '%s\n' "LABEL=boot /boot ext4 noatime 0 0" >>/etc/fstab
# An own machine id: without one each boot is a first boot, which enables all units again.
systemd-machine-id-setup >/dev/null 2>&1

useradd -m -s /bin/bash lab
useradd -m -s /bin/bash nosudo
echo 'lab ALL=(ALL) NOPASSWD: ALL' >/etc/sudoers.d/lab
chmod 440 /etc/sudoers.d/lab
for user in root lab nosudo; do
    home=$(getent passwd "$user" | cut -d: -f6)
    install -d -m 700 -o "$user" -g "$user" "$home/.ssh"
    install -m 600 -o "$user" -g "$user" /tmp/key.pub "$home/.ssh/authorized_keys"
done

# --- sshd ---------------------------------------------------------------------------------------------------------------
rm -f /etc/ssh/ssh_host_*
install -m 600 /tmp/hostkey /etc/ssh/ssh_host_ed25519_key
install -m 644 /tmp/hostkey.pub /etc/ssh/ssh_host_ed25519_key.pub
cat >/etc/ssh/sshd_config.d/lab.conf <<'CONF'
ListenAddress 0.0.0.0
HostKey /etc/ssh/ssh_host_ed25519_key
PasswordAuthentication no
UseDNS no
PrintLastLog no
CONF
# Who logs in sees no message of the day, but is still told by pam_nologin that the machine boots.
sed -i -E '/pam_(motd|mail|lastlog)/d' /etc/pam.d/sshd

# --- network ------------------------------------------------------------------------------------------------------------
# The first card is eth0 whatever kernel and command line; addresses are those of QEMU's user network.
ln -s /dev/null /etc/systemd/network/99-default.link
cat >/etc/systemd/system/lab-net.service <<'UNIT'
[Unit]
Description=Address of QEMU's user network
DefaultDependencies=no
Requires=sys-subsystem-net-devices-eth0.device
After=sys-subsystem-net-devices-eth0.device
Wants=network.target
Before=network.target
[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=/bin/sh -c 'ip link set lo up; ip addr add 10.0.2.15/24 dev eth0 && ip link set eth0 up && ip route add default via 10.0.2.2'
[Install]
WantedBy=multi-user.target
UNIT
systemctl -q enable lab-net.service

# --- nothing that need not be started -------------------------------------------------------------------------------------
systemctl -q set-default multi-user.target
systemctl -q mask getty@tty1.service serial-getty@ttyS0.service getty-static.service \
    apt-daily.timer apt-daily-upgrade.timer dpkg-db-backup.timer e2scrub_all.timer fstrim.timer \
    e2scrub_reap.service systemd-tmpfiles-clean.timer systemd-pstore.service systemd-binfmt.service \
    systemd-hwdb-update.service systemd-journal-catalog-update.service systemd-update-done.service \
    systemd-update-utmp.service systemd-update-utmp-runlevel.service systemd-machine-id-commit.service \
    systemd-firstboot.service systemd-sysusers.service ldconfig.service systemd-udev-settle.service \
    systemd-ask-password-wall.path systemd-ask-password-console.path systemd-boot-system-token.service \
    sys-kernel-tracing.mount sys-fs-fuse-connections.mount dev-hugepages.mount sys-kernel-config.mount \
    modprobe@configfs.service modprobe@dm_mod.service modprobe@drm.service modprobe@efi_pstore.service \
    modprobe@fuse.service modprobe@loop.service kexec-load.service
mkdir -p /etc/systemd/journald.conf.d /etc/systemd/system.conf.d
printf '[Journal]\nStorage=volatile\n' >/etc/systemd/journald.conf.d/lab.conf
printf '[Manager]\nDefaultTimeoutStopSec=20s\n' >/etc/systemd/system.conf.d/lab.conf
echo 'kernel.sysrq = 1' >/etc/sysctl.d/lab.conf
sed -i 's/^LOAD_KEXEC=.*/LOAD_KEXEC=false/' /etc/default/kexec
# Time stamps, or the units that rebuild caches would run at each boot.
touch /etc/.updated /var/.updated

# --- hackbench alone: its package wants Python -----------------------------------------------------------------------------
(cd /tmp && apt-get -qq download rt-tests && dpkg-deb --fsys-tarfile rt-tests_*.deb |
    tar -xO ./usr/bin/hackbench >/usr/bin/hackbench && chmod 755 /usr/bin/hackbench && rm rt-tests_*.deb)

# --- GRUB -----------------------------------------------------------------------------------------------------------------
release=$(basename /lib/modules/*)
boot=/boot
prefix='(hd0,msdos1)/boot/grub'
if [[ $boot_in_root == no ]]; then
    boot=''
    prefix='(hd0,msdos2)/grub'
fi
mkdir -p /boot/grub/i386-pc
cp /usr/lib/grub/i386-pc/*.mod /usr/lib/grub/i386-pc/*.lst /boot/grub/i386-pc/
grub-mkimage -O i386-pc -p "$prefix" -o /usr/lib/grub/core-lab.img \
    biosdisk part_msdos ext2 normal loadenv linux configfile serial terminal echo test sleep reboot halt search
entry=$(sed -e "s|@RELEASE@|$release|g; s|@DISK@|$disk_id|g; s|@BOOT@|$boot|g" /tmp/rescue-entry)
{
    cat /tmp/grub.cfg
    printf '%s\n\n### 41_custom\n' "$entry"
    # The text of Debian's script without its here-document.
    sed -n '/^cat <<EOF/,/^EOF/p' /etc/grub.d/41_custom | sed -e '1d;$d' -e 's/\\\$/$/g'
} >/boot/grub/grub.cfg
# update-grub keeps the rescue entry, and its name.
printf '#!/bin/sh\nexec tail -n +3 "$0"\n%s\n' "$entry" >/etc/grub.d/09_rescue
chmod 755 /etc/grub.d/09_rescue
sed -i -E -e 's/^GRUB_DEFAULT=.*/GRUB_DEFAULT=saved/; s/^GRUB_TIMEOUT=.*/GRUB_TIMEOUT=1/' /etc/default/grub 2>/dev/null ||
    printf 'GRUB_DEFAULT=saved\nGRUB_TIMEOUT=1\n' >/etc/default/grub
cat >>/etc/default/grub <<'CONF'
GRUB_TERMINAL=serial
GRUB_SERIAL_COMMAND="serial --unit=0 --speed=115200"
GRUB_CMDLINE_LINUX_DEFAULT="quiet"
GRUB_CMDLINE_LINUX="net.ifnames=0 console=ttyS0,115200"
GRUB_DISABLE_OS_PROBER=true
CONF
grub-editenv /boot/grub/grubenv create
grub-editenv /boot/grub/grubenv set saved_entry=rescue
rm -f /tmp/setup.sh /tmp/key.pub /tmp/hostkey /tmp/hostkey.pub /tmp/grub.cfg /tmp/rescue-entry
