"""Weights of `ThroatSoundDetector`, written by ``tests/training/throat_sounds.py``.

They were learnt from recordings by K. J. Piczak (ESC-10, CC BY 3.0, clips of Freesound),
F. W. Buhl (EmoGator), V. Panayotov and others (LibriSpeech, CC BY 4.0), Picovoice, and people who
gave theirs to the public domain; tests/training/README.md names all.
"""

from __future__ import annotations

from ._embedded_weights import Packed

WEIGHTS = Packed(
    values=r"""
1q1>9`~m?8`v3m`^#1(+1pWjC0sj8{00#U30R#O600aF70{i>|0R{d81O5OC0|Wv5{sH>}|Na5|0RI900|NsE|N8p@0|5m6{
{Q|5{{jI2{{IC31qb{E|NR090t5d10RjE}{{H{_`~U#}0tWmD0{;L20|os80QUX<1ONU20R9922?z880|5mH0sI91{Q~~{`v
3p>2>b*20RsFG2>|{62m$~C1o8p@0R#E}|M~>~2MPH91^@p91N{mA`~dy~`~Cj>2L1;80R#RL0{;I12Lbp42=f910Ra2{1^D
~{2MhT31OWa41NsU71OomE0{Q;=3;hTF0R#UP2LJp52?qB60`3I;1pfN_1o;632MGN7|Na92|NjE{{sH*}0{{Q~1^oo}{s03
F1p@j23jqH7{qg()1^@W{2>|^70|5U13j6^E1NjI3`2+s|2LJi=1_1>800RUM0tNmC2nhiC{Ph0+{R9B|0|@p03jhHA0ssX8
{rLj@{sII50si*%3;zTB{tNpQ{sQ_02Lk;6{Q3U@`T_#_`v(L55d-`91NsR3`1u9_1ONd40sr{;3<UxJ`wjXF1N{5`1PJ{7|
M~p_{{Z^^`vCs}3kU!H0s8&{_Vxe*3;q260R;5)4FUuD`V8<11ONO03IzQ90`>m=`2qy_{ssF03k3iB1ON#E^Z)$=1pxyC^8
EPm1Ofs9`~(051OEQ}0uK26{`>|3|NH&|0ss8}4h8@E3ikv51O)v4{{s36{Q>>~`vdv^1N#C1|M>m@`vLj|00sL6{{#I30{r
>|`u+h30s#UD0s{Q_{si{}0{;aB0|Na20sj5_`uPI?00jK}0t5O000a8~0s#jA{R00A`vC?B0|op5{{i|1_WA<;0s#F00Rj2
{_yGU_0RsH}0RjB}0s{a41O5R42L<~B{{RIG0|5j5{{i~}0{;O01OEW~0Q~w0`ve020sQ&=0{#F11N#F41_c2G{saI30{{aB
0Raa7`U3v_0R8~~0Q>?00Q~(0{r>?20tEg01^@m60|5E}1_1v9{sjR62Lb^C1O5g60RaC4`}+O&1pWd50Q>(10sjI700Q~`|
NH>{1p)v43H<;B`~v|50R9C5{{IC50s{O20sH*)1pWj3`~d<61_l5D1poN||M&d;00I911qS^81^oO30s#d50RI03{s#L30|
EN=1ONi~{Qm<32MhrL1N!;?0Q~(0{sjI0`v&#{{`>s^{saR8`v3z4{{#U4{{i^<008;=`~(FJ0|Nd30Qvm>0tEf}`UCv~`wa
XA2>t^E_5ub0`uzX_2mky300jI10|)o}{0aF0{{8;``~Ls_00;a40R932`Thn23;zKP{s998`TPC(1_A!~0s;B=2?P54{s!&
-^7{h*0Q>v{`~&~~{sapF`UM990|5d8{RRmE^#S|^1p@*B{`>v-00;Q~`v(F6{{#2_{|Na3{09L70sa2|`vU#{3IO^70s933
1pxm51N{F4`2zd@0R#I60s;Q^1pN8{{0asG00;j7`vC$01^NX4{Qm<6|NH|1009F5|NQs?{{9021O)X3{r&>+_x}a{{{aIA0
|NU0{rLp}0RRF2{{I6I_W=eB0RaL50{r&?`uzd{00#I2{`&g%{s8|6{QwLC0{`~{1N#E`{QU#{{sjvT`2Yh30RaR90sZ^|`u
zd`1Of#C{`&y>00RUD0|*KJ2LJ#4`}zR<1OEO2000aH{Q?380Q~;{0{Z&~{Qv|5`~(39{{I5={r~|20t*QJ0|EX4{q+F<|M&
X?`T_z9{{sC80Q&t12l@j8_xu3+1p@#G{`&s(`T-3H00aR70{;O20QUy|{rCU=`v4CC1ONj9{`dm{2LS#F0RRB?2LS^B`}+v
@_y`UC2>tv00{Hy`{QCg^{{8y@{P_h20s{v9{`v<D2LA#A2?GE22>=58`~M651q}rJ3IzZ51pNH}{Qvy@^#uC{`v3?7`2Pz0
`U3z31ONj73IY502?YNC`~U#-3jzoE2=)8{1_%EH_yGd~`33?6`vC<1`u_<4`~Lj@2K)v62m}8B{sjL1{RQ;(_5K0-|Mm+71
_b~E0s#pB1OEyG`uq9){09X7{R8;?0Q&>=0|fp01pod5{{{8(>i_)w`t|$@`vw5@0R0XE`2Gq2|Niy)`~eF4`~Ug(|N9B`1^
WN{`~&{||NQm!^Zfq({`?II@B{+(0{sXC`}__4{r>>?0{sp50u1&92m1j100sH``~d(20Q&^}`~v#`_Xhs~1^)y6`ThX{|Nj
L51_1>B|NQ^{{{jI30R8;`00;g90Ri~|{rm;^0{;dA?EC@*1O5N`0R0LB_zDFC1o;OD_6GF?`v?FB0{#L1`UL_10tEj80r>j
(|NR96_5cY10SE&Q4fz291pf2^0R#pJ{RjL3`vCzA{r>;`{Q?61`w95~{sjR61pf#E_5lg~00sgG1^)m4_XG9(1ONdA1_k~7
|N8n10R05}1^)vD00i^{|NH^@{Q&;}`veF5^8f%31O5g9>HPNt`veF62m$>40sQ?7|M~_00Qvy{00Qy}1o`>&1pEgB`~(pM_
xSz^{r3p{>h}Et{s0aE1OWX3|NI380s{UA1pfsB{ssN~0rm&~0to^I`v(j8|Mvb5{{jF2^7``#1OERB0|WmB{Q3$8`UU;>4*
diC{{;W{{`?6D3J?kX{sj5*0RRIN{|EQ~`vms{0R;d8|NIC6_y7X|{r~&@1Nr^`0RR63{`d#_1^)o`{re361^WI1^#b_<_x=
Y00|NH~{Q(F8{0jm8{RjR30RI053;zNG0Q>y;`1JVy_4W$=1o`>`{{{2^_6HCB{r&a^00RI51Ox&9_5ud_`}_b3`1%9~{r~X
y^Y`-o`2HCE|Ni#)2Lk;G`3DL3`1}3-2LcE8{`>|200#jD`u6?|`~L+70{#B<_Wkn$4f+uQ1M>6&0S5Q@`u+&}0sQ#_5CaAK
01fZ_3-$^3{s8>|`T_(5`UMOD^9lm@_yzj=0Qmj&?)3Qz^8O9|0tf>C{Qmy_01NB>0Qvz23jGHQ@%aD&`vL<4_Wcp^>izol2
L%811O@R21`7`f`TPj~>iGEn01WE}{{9I30Q~p<1M>#|1NrX#3H=TC_X7I!_5=X}5&QZL{{H^``w9yN{QUd>00!|2{rv{>0s
Q&>0R#5^{{s300ssX4`uhJ1^bH071OpKR{{Qj!1Ox>B2mSy1{sHy@{`mp+0{i*|0R`>=0r>#`{rUR(0QmSB@B#t&{sS8T_xk
ny00;pB2>1H{{si^{{`v&{0r&(0_yhC<1p5L11^fU10{8nI^a2F<{{9;N`1t$(2L=WF2KWK~{Qvg>0|Nf~0s0C5_X_y>0s03
60}2EB0r~h5^ZWw={P_(3`TOhv3<CrI1Ni_4{QdR-{0IB*|NjO3{tWo|{`v|H1PufI0QUI``Tzt3_67_5{RHm)3jzB3{Q3k3
^aAho`vLX%0RRjH{0;p3`}7a_{{sH}`|bz{1^EB}^#A+(1^@m4{rdI&_W%3}`waW``~>~;1Oo>R{tEE<{s05~0Qda@_Voe%5
B>cB00;5<0RR5?2KN610|EB}0s;c}_6Gm={Q?9L{sr~_`U3v_{`U6){`?5?2?6>32nY56^#=d=`uP0_4+Q!C|M>{~0R#a71p
WUC^$7d_0Q~y%`}+C>5&sGL6Zri000Q><`S$<?`u6?>4*dcC0sjaA1o{B>@%jV=0R9CC{09d7^#twv1N{N~|M~p>@csP;_W%
R)00II3{Qdy}1OWp7|NHv<`uGb9`t}9>{sI04{r>U)0RRQ~1p@;C0s;gD0tW;3`~nC1^7sD)0R;sF`vL>`0r~j;0{I940{id
!1^V>@3IhB1`T_#}4h9AS0R;&4^aBD2{`&y`00aL8{{RE^`~3X`2>k>900RC40RHj<0Q~|7_XGp=0ssX7|NQ~>`vCw02m1g1
0sa5}0RaF4`uhC}1OEI20s8(31pV~{1oHe6`3C{+0|Ep9`~3s{`Uv_02loO0{{s5_{s0CB{`&<4`Tzh31N;E{1^f2_2J`|F_
yYs)1pf~H1N{a5{RspA0{I60|NQ;+0sjF5{QC(4_5uI^0Q~{}00#901oZw5`u+pv009L61^NU4`~&{`2>J*F|NjO5{sjE{{Q
?C8_W=O^{r>|70|@{J0`>d|1OEf?_yq$73I6{7{{I8|0sIC7`vn2{`~dv|0R;vG@&*3={rU*|1N#95|Mmg`0RjQ>`TYL^2Kx
m5`}zR;{`~<20|El~{r?01_yz?C|Ni*>|N8y>{rda``T76;2LuB40|fj21qJ^21N#00|NH{|1OW*8`vM03`U(RI0Q&j}`~3g
_`1}F{{r>{^4GIGK3IP5B0t5g2`uYR~2Lk>50Q(8<{`~|2{saI8@%{n^{`>d!0Qv?81^o;93jzZB0{#2`1N;LB_xu3)1^x&5
0Qw63{`mt3>;wP+{r&_8`~?U4`vnL2`vC(21pWL0`uG0>{Q>y`|NZp<0R{X3|NQ_0`~Cd{^ZN)0`~3s}{Q(04{`>*{`u_X@{
{#O21o{I50|@#8{{i^@`uzI?|Nj04{Qmy~_5J(-0s#d80Rj5_{{jL30tW#600;vA4*LQ91pWa20s;E|{s8^~{{{I2{Qm$0_5
A$;3IGBC00IL91OEB`{{H{|{{a600{r~|1NaO0`2PC_3H<;70s#B^`~Uw2{`&z0{{8?0{{RF51_1m3|Ni|1{Q?2^0sQ&@0{s
vB^8Wq+0{a8~{s;H^`~d(71NjC0{r(060|5j72LJf~0Q~|5{s98>1pfB`3;Y=U^Z@(-0Q?93{{{a2{r>?60RRU6`U3|20RI2
|1_u56{Qm>`{{92>1^fB|2mcuZ^!@z&1pEpG{tN#I{Qdz10t5j3{{II9{`dt52nGcF{r~;|`~L#@_xS$>2mcTQ@dN(*0R993
`wRg8{Qdd}1O)~E_XYt0{qza_3;hTJ0s#R900RO1|M&p{2>}KK{R002`TP6>0SW>D{{0090|o>K2LS#3|N8y{1^5d4`2+g>1
qJ~G4Ep>42mAd1{{sgG{rvp^0|Eg8{{9070tN*M0sR03{QCO@{{9X8`~v{<0|*2H3;g~A3jX~A_y7n4_5}a@{{Z^+{QU(42L
S~G@Bak@{{8*=0Qn960s;#6{|N&F2>bj12lWC6^a2F``Tzp?|NQ~;0sR601qlQG^aKD1`~n2{_XG*|`u+w40R#R5`t$t;{P_
F_{{8s@0S@;90RH^=|NHs*{0RjI{r~#>{`&?10RRH~_5Jz<`vn3A0Qd(20sRLA1O5I0^#u9?1ONR11N#2~_6PX@1q1y40|NQ
~`2hp_1ONX60}BHN4EX;3{`m&~{{H#|{RI900R99A|Na5{_67O;3;+TA{|o&A0sZ>^0{{a31N!|2`1|_+{s0O3`}O$+1rGH8
1N#R2`TYX}{sRC7`~U&{0SE;G4*vc9`~v+11pfa5`u_X`{r(2`@bmru2nzB1{s#vE`~L$20RRE{{QLz01quQE4gdTA1pfd53
k3xT1OoZ|1p*QH_VfV&1_t^6`v?gC`u+a>0|Ny4`vn92015y52?+oD{ssX23;_WL2LJg2{`wLA`1ASy2L<{6{|f>C_x}a}1^
@*90{{d7{{aO71Oxm40RH^{{`mm~`U3+5{Q?XC_5=d?{|5X4`wRU30RsO6|N8*}`~Us`0rm#{3H$m10tEj9_x}O}`~m|51q1
~I_zVL2`276)0u28F{Qv{~1ONa72LJo}0`dR^1pEX4{RQ{<^acYC0tO5I1^fU3015~H^!NP%0|fpH{s0611pxyG|N8#_{rdX
}|NRL4`UU{^`3VLN1_K8I0tfs5`T+|8^aA|*0s{K?{sIL71ONmB@%sb;|Nr{?{`>;|009g7`UnCD2L=iN1N`~{`Th(6{RI2>
0|5N}1^WaC3<&}V_4@`6{Q>~~_y7X@{r~^^`UwOA`~U$00QvX`{Qd_2{|5j50RsB`3iSK{01F5Z`TPF~0r>y`0sRE|^!E1&{
0amD2lEC10QmO;0s92}^#%9=1OoT`3HSm3`ULg=1pNdA1^)H_`T+g>{Qd&|{RRO73HJN|0`>d+0R8_01Oxp7|N9321pNL3{0
sdA2LAv6{|o^H0RRR61p5K}4F3QG{rC6$1^)Z~2=(|03J~)E1N8*?|M~|9{|EmF{rm<50TKoO4E+WD00I5{5d;AN0sHj>{{Q
s*{_^_*3lj4E`uqy~0{#X7{RRU8_xb<>0uBEI3IY!M0s;H{8Vd*q3;y&31^M~>2l4p>1`PH5`v493`Tqg?`ve2|{{H~~0SW>
G1PTZD{ssN~7YhXh2>$Q}2>bc}4f6c~2MhNE`ve38_y7X~1ONj4`~v_0{sj*P2nYNE{{Z~|{`~_0_XGe20Rs8}2LuNF{0sa3
`ULv`0RR621ONXA0{;XA{{8>}1OWB^0{{I5@c{!1`27b41O@g42@3@J^$7a^{t5j9`~v?0_yYk52>b&50s8+1|NjL7`Um#}_
5%P11po{G2mSZ|3IqiO`UCU<{{;UI`Thd{`vd+82mJvA{Qdz6_yPw3_yGF<^$7z61p5vI2Lti_1po#I1P1l}`~vv_`U3<5_X
Gq9_4@$={ssL30RsL3{ssB_@el+D3IqlL2?Fu|2>t>A{|5E^7#0HS&<)o42=@Kp3<M166dvLy?f2{cH4G8m?BMPR0v!Gf0LJ
YE5cKc!77YYLA2Rjr)&=Dj4F~<;2o?bNCI9jA4&n|QHxvEc=k(G9_#6V{3EcM;{oeo$A0!$b6dU#S$Qkqe?eP5X4jJkN5(en
+2lfRY0x$*D^W@VJ{uk@{^V<OX5cK^UFAo|71^yi7?(6^$&EC=Q8V1N44GH~m9{%_6!2gC8902y+<i;2n4(=TXHx?2l7}XBr
^dy2U1>iXP!t(0lBG2z8`vA5a`}E$umHy5V>;MT7_0;}5{`LRF2@wJXNYnP^`~u5W6Ym}w)cfk?F4rX&1P$El<o|{3>l^SX=
<*Km<IW)z-0vKM5A5vhIRN?S_T)4-_Td=%sP5wD59b*h0vXN?_W{@71`PNUCh-&G)v^5{+3E?_68z%#KobV&3G*Tj5#==J#S
GNq5!&M&3nIM%_2wAE`t9}X1>Okx)WQ!isoVw&4E5FX4jmEk7xE(l9mGZZ-!k{v1GNf3_#DjI|Ilff0q+*%^}+_q=7H!-=&1
7{<kbD>5OE3g{Qmv`{`VUI0Q~#~{q_A2_45(+3<nDH@$~Hk0|5&52=N600t){9>H7ot{rvXk{`~#{1o0pA_W%P1{`B?=_WAq
t1Of=^>IVM{`v(jF1ndzJ`~dm=@B8=w`ttST_y6n%2m}lZ0}%xL?(G)v`TYC?1NjH?2Jzqb{QL$B{0H>{`vmk1_V4)g3IOc>
`1tt)00ja02L1^I0saX8_X+p^{Qvy>7zGaW_WcJ1{sZ^>0RZ;@`2qFw3H|~D`|$|(0R{Z^0R;vK`v?L7{|pNK_y73}5&sMO0
s905^aB9;3ikj83<3W92Lu28`uzm$0tEi<{0avL0Q~&|{RRc~>H-h}_XYU<1^@s6^8on*_y7PH2m<)}4hr=K{0;a35CsAJ9s
vjn|NRC30s933`2h<G`u+j=`vC(5{09B|{{;X42?!4R0RjI4{t@^P`w9FB2K@>J0{<5N{qO_<{{;OC1PJ>8`~U+A{S5*91QG
W80uBZB0QUX@`3e3G<qGu%`|Se(0R;y0|N0RL02ApE{1NF71pfgD^bh*;4H^0U4iWSG0Py?)fh!5Y#`fFv1M(IU!9>j0na}y
+0QV653EUq9Aub3FBK`^A6z~5T^$izC_7Dm#-pguHD<sj%P%bxAWG=(l={;RlNIG{hP{y!aY@OefWJ!A5sy%-=uf#_;u1Uf#
""",
    inner_step=0.01462,
    offset_step=0.0570008,
    outer_step=0.00969323,
    offset=-3.39644,
)
